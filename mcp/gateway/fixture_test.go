package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/test/check"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

// A fixture is a gateway between a client of the test and servers of the test. Neither has a transport.
type fixture struct {
	*Gateway
	t       testing.TB
	servers map[string]*played
	judge   *judge

	mu     sync.Mutex
	passed []string // what was recorded: direction, server, method
	refuse bool     // nothing can be recorded
}

// A played server answers what its script says.
type played struct {
	name, caps string
	modern     bool
	process    bool
	down       bool
	tools      []string // tool objects
	unlisted   error    // of tools/list
	script     map[string]func(ctx context.Context, l *playedLink, params jsontext.Value, on func(wire.Message)) (upstream.Reply, error)

	mu      sync.Mutex
	links   []*playedLink
	got     []string // what came: method and params
	answers chan string
	told    func(id, message string) // takes the place of answers
	notes   chan string
	changes uint64
}

type playedLink struct {
	*played
	peer    upstream.Peer
	uses    int
	idle    atomic.Bool
	retired atomic.Bool
	done    chan struct{}
	once    sync.Once
	kept    *upstream.CachedListing
	made    uint64
}

func (l *playedLink) ServerInfo() upstream.ServerInfo {
	h := upstream.ServerInfo{Protocol: "2025-11-25", Capabilities: jsontext.Value(l.caps), Server: upstream.Info{Name: "upstream", Version: "9"}}
	if l.modern {
		h.Protocol = session.Stateless
	}
	return h
}

func (l *playedLink) Modern() bool          { return l.modern }
func (l *playedLink) Done() <-chan struct{} { return l.done }
func (l *playedLink) Changed(uint64) bool   { return false }
func (l *playedLink) Call(context.Context, upstream.Call, func(wire.Message)) upstream.Returned {
	panic("the judge of the tests makes no calls")
}
func (l *playedLink) Use() bool {
	l.played.mu.Lock()
	defer l.played.mu.Unlock()
	if isClosed(l.done) {
		return false
	}
	l.uses++
	return true
}

// Release closes a process at once if nobody uses it.
func (l *playedLink) Release() {
	l.played.mu.Lock()
	defer l.played.mu.Unlock()
	if l.uses--; l.uses == 0 && l.process {
		l.idle.Store(true)
		l.Close()
	}
}
func (l *playedLink) Idle() bool    { return l.idle.Load() }
func (l *playedLink) Process() bool { return l.process }
func (l *playedLink) Retired() bool { return l.retired.Load() || isClosed(l.done) }
func (l *playedLink) Close()        { l.once.Do(func() { close(l.done) }) }

func (l *playedLink) Request(ctx context.Context, method string, params []byte, on func(wire.Message)) (upstream.Reply, error) {
	l.played.mu.Lock()
	l.got = append(l.got, method+" "+string(params))
	play := l.script[method]
	l.played.mu.Unlock()
	if play == nil {
		return upstream.Reply{Error: rpcError(wire.MethodNotFound, "no "+method)}, nil
	}
	return play(ctx, l, params, on)
}

func (l *playedLink) Notify(_ context.Context, method string, params []byte) error {
	l.notes <- method + " " + string(params)
	return nil
}

func (l *playedLink) Answer(_ context.Context, id, result, failed jsontext.Value) error {
	message := string(id) + " result " + string(result)
	if failed != nil {
		message = string(id) + " error " + string(failed)
	}
	if l.told != nil {
		l.told(string(id), message)
	} else {
		l.answers <- message
	}
	return nil
}

func (l *playedLink) Listing(context.Context, time.Duration) (*upstream.CachedListing, error) {
	l.played.mu.Lock()
	defer l.played.mu.Unlock()
	if l.unlisted != nil {
		return nil, l.unlisted
	}
	if l.kept == nil || l.made != l.changes {
		l.made = l.changes
		page := `{"tools":[` + strings.Join(l.tools, ",") + `]}`
		l.kept = &upstream.CachedListing{
			Listing: upstream.Listing{Number: l.made + 1, Server: l.name, Status: upstream.StatusUp, Pages: [][]byte{[]byte(page)}},
			At:      time.Now(),
		}
	}
	return l.kept, nil
}

// plays adds to a server's script.
func (p *played) plays(method string, play func(ctx context.Context, l *playedLink, params jsontext.Value, on func(wire.Message)) (upstream.Reply, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script[method] = play
}

// says makes a server answer a method always the same.
func (p *played) says(method, result string) {
	p.plays(method, func(context.Context, *playedLink, jsontext.Value, func(wire.Message)) (upstream.Reply, error) {
		return upstream.Reply{Result: jsontext.Value(result)}, nil
	})
}

// received is what came of a method.
func (p *played) received(method string) (params []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.got {
		if rest, ok := strings.CutPrefix(g, method+" "); ok {
			params = append(params, rest)
		}
	}
	return params
}

func (p *played) link() *playedLink {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.links) == 0 {
		return nil
	}
	return p.links[len(p.links)-1]
}

// A judge plays the machine.
type judge struct {
	mu     sync.Mutex
	hidden []string          // tools that are not allowed
	groups map[string]string // of tools that only a group may call
	asked  []*ToolCall
	decide func(context.Context, *ToolCall) Answer
	tasks  map[string]jsontext.Value // by identity and id
}

func (j *judge) Tools(kept *upstream.CachedListing, identity *policy.Identity) (tools []Tool) {
	for _, page := range kept.Pages {
		wire.ForEachMember(page, func(p wire.Piece) {
			wire.Items(p.Value, func(raw jsontext.Value, _ int) {
				if name := wire.TextMember(raw, "name"); !slices.Contains(j.hidden, name) && (j.groups[name] == "" || identity.InGroup(j.groups[name])) {
					tools = append(tools, Tool{Name: name, Raw: raw})
				}
			})
		})
	}
	return tools
}

func (j *judge) Call(ctx context.Context, a *ToolCall) Answer {
	j.mu.Lock()
	j.asked = append(j.asked, a)
	decide := j.decide
	j.mu.Unlock()
	if decide == nil {
		return Answer{Native: true, Result: jsontext.Value(`{"content":[]}`)}
	}
	return decide(ctx, a)
}

func (j *judge) last() *ToolCall {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.asked[len(j.asked)-1]
}

func (j *judge) Task(_ context.Context, who Identity, id string) (result, failed jsontext.Value) {
	if r := j.tasks[who.Name+"/"+id]; r != nil {
		return r, nil
	}
	return nil, rpcError(wire.InvalidParams, "no such task")
}

func (j *judge) CancelTask(ctx context.Context, who Identity, id string) (result, failed jsontext.Value) {
	if _, failed := j.Task(ctx, who, id); failed != nil {
		return nil, failed
	}
	return jsontext.Value(`{}`), nil
}

const everything = ExposeTools | ExposeProgress | ExposeCancellation | ExposeLogging | ExposeResources | ExposePrompts | ExposeCompletion |
	ExposeSampling | ExposeElicitation | ExposeRoots | ExposeInputRequired

const allCaps = `{"tools":{},"logging":{},"completions":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true}}`

// newFixture is a gateway before servers with these names, everything of which is exposed unless change says otherwise.
func newFixture(t testing.TB, names string, change func(*Options)) *fixture {
	t.Helper()
	r := &fixture{t: t, servers: make(map[string]*played), judge: &judge{tasks: make(map[string]jsontext.Value)}}
	o := Options{Config: Config{Calls: r.judge, MaxAge: time.Minute}, Tasks: true, Info: upstream.Info{Name: "pgfsm", Version: "1"}, Passed: r.pass}
	for _, name := range strings.Fields(names) {
		p := &played{name: name, caps: allCaps, answers: make(chan string, 16), notes: make(chan string, 16),
			tools: []string{`{"name":"echo","inputSchema":{"type":"object"}}`}}
		p.script = make(map[string]func(context.Context, *playedLink, jsontext.Value, func(wire.Message)) (upstream.Reply, error))
		r.servers[name] = p
		o.Servers = append(o.Servers, Server{Name: name, Expose: everything, Sessions: upstream.SessionsSession})
	}
	if change != nil {
		change(&o)
	}
	g, err := New(o)
	check.NoError(t, err)
	r.Gateway = g
	g.openUpstream = r.join
	t.Cleanup(func() {
		g.table.EndAll()
		g.links.closeAll()
	})
	return r
}

func (r *fixture) join(_ context.Context, server *server, p upstream.Peer) (upstreamLink, error) {
	s := r.servers[server.Name]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, &upstream.LinkError{Code: upstream.CodeUnreachable, Reason: "it is down"}
	}
	l := &playedLink{played: s, peer: p, done: make(chan struct{}), uses: 1}
	s.links = append(s.links, l)
	return l, nil
}

func (r *fixture) pass(_ context.Context, p Passed) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse {
		return fmt.Errorf("the disk is full")
	}
	r.passed = append(r.passed, p.Direction+" "+p.Server+" "+p.Method)
	return nil
}

// A client of a fixture.
type client struct {
	*fixture
	from     Identity
	identity *policy.Identity
	at       string
	session  *clientSession // nil: stateless
	can      string         // its capabilities
	protocol string
	out      sink
	hear     *session.Reader // what is said to the session outside of requests
}

// A sink keeps what a client is told during its requests.
type sink chan string

func (s sink) Send(message []byte) error { s <- string(message); return nil }

// modern is a client of the stateless revision. An empty server is all of them.
func (r *fixture) modern(server, can string) *client {
	return &client{fixture: r, from: Identity{Name: "ann"}, at: server, can: can, protocol: session.Stateless, out: make(sink, 64)}
}

// legacy is a client with a session.
func (r *fixture) legacy(server, can string) *client {
	r.t.Helper()
	return r.opens("ann", server, can)
}

// opens is a client of an identity with a session.
func (r *fixture) opens(name, server, can string) *client {
	r.t.Helper()
	c := &client{fixture: r, from: Identity{Name: name}, at: server, out: make(sink, 64)}
	q := c.request(`1`, "initialize", `{"protocolVersion":"2025-11-25","capabilities":`+can+`,"clientInfo":{"name":"c","version":"1"}}`)
	answer := r.dispatch(context.Background(), q)
	if q.Session == nil {
		r.t.Fatalf("no session: %s", answer)
	}
	c.session, c.protocol = r.sessions[q.Session], q.Protocol
	c.hear = c.session.Listen()
	return c
}

// dispatch dispatches a message as the front does: the client of a session can cancel its requests, and the end of the session cancels them.
func (r *fixture) dispatch(ctx context.Context, q *session.Request) []byte {
	if s := q.Session; s != nil && q.Method == noteCancelled {
		s.Requests.Cancel(session.IDOf(wire.Member(q.Params, "requestId")))
	} else if s != nil && q.Request() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.Context, cancel)()
		if err := s.Requests.Add(session.IDOf(q.ID), 64, cancel); err != nil {
			return wire.Failure(nil, q.ID, rpcError(wire.InvalidRequest, err.Error()))
		}
		defer s.Requests.Remove(session.IDOf(q.ID))
	}
	return r.Dispatch(ctx, q)
}

func (c *client) request(id, method, params string) *session.Request {
	q := &session.Request{From: c.from, Identity: c.identity, Endpoint: c.at, Protocol: c.protocol, Out: c.out}
	if c.session != nil {
		q.Session = c.session.Session
	}
	q.Method = method
	if id != "" {
		q.ID = jsontext.Value(id)
	}
	if params != "" {
		q.Params = jsontext.Value(params)
	}
	return q
}

// readRequest is a request as the dispatcher reads it.
func (c *client) readRequest() *request {
	q, _ := c.newRequest(c.request(`1`, "x", `{"_meta":`+c.meta("")+`}`))
	return q
}

// meta is the _meta of a stateless client with more members in it.
func (c *client) meta(more string) string {
	if c.protocol < session.Stateless {
		return `{` + strings.TrimPrefix(more, ",") + `}`
	}
	return `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + c.can + more + `}`
}

// ask sends a request and returns the answer. Params get the _meta of a stateless client.
func (c *client) ask(method, params string) string {
	c.t.Helper()
	if c.protocol >= session.Stateless && !strings.Contains(params, `"_meta"`) {
		set, err := wire.Set([]byte(params), "_meta", []byte(c.meta("")))
		if err != nil {
			c.t.Fatal(err)
		}
		params = string(set)
	}
	return string(c.dispatch(context.Background(), c.request(`7`, method, params)))
}

// received is what the client was told during its requests so far.
func (c *client) received() (all []string) {
	for {
		select {
		case m := <-c.out:
			all = append(all, m)
		default:
			return all
		}
	}
}

// pushed is the next message outside of the client's requests.
func (c *client) pushed() string {
	c.t.Helper()
	for {
		if all := c.waiting(); len(all) > 0 {
			if len(all) > 1 {
				c.t.Fatalf("more than one message: %s", all)
			}
			return all[0]
		}
		select {
		case <-c.hear.Wake:
		case <-time.After(10 * time.Second):
			c.t.Fatal("nothing came")
		}
	}
}
