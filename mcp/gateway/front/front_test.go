package front

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/internal/web"
	"pgfsm/internal/web/loopback"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// patience is how long a test waits for what takes a moment.
const patience = 30 * time.Second

// A script plays the dispatcher: what it answers to tools/call depends on the name of the tool.
type script struct {
	g        *testFront
	entered  chan *session.Request    // every "wait" that is under way
	free     chan struct{}            // lets one "wait" go on
	received chan string              // methods of notifications, and "response"
	before   func(q *session.Request) // of each request
	ends     chan error               // why the context of a "wait" ended
}

func (s *script) dispatch(ctx context.Context, q *session.Request) []byte {
	if s.before != nil {
		s.before(q)
	}
	switch {
	case !q.Request():
		name := q.Method
		if q.Response() {
			name = "response"
		}
		select {
		case s.received <- name:
		default:
		}
		return nil
	case q.Method == methodInitialize:
		revision, _ := wire.Text(wire.Member(q.Params, "protocolVersion"))
		opened, err := s.g.table.Open(q.From, q.Endpoint, revision)
		if err != nil {
			return wire.Failure(nil, q.ID, wire.ErrorObject(codeRefused, err.Error(), nil))
		}
		q.Session = opened
		return wire.Response(nil, q.ID, []byte(`{"protocolVersion":"`+revision+`"}`))
	case q.Method == "ping":
		return wire.Response(nil, q.ID, []byte(`{}`))
	case q.Method == methodListen:
		<-ctx.Done()
		return wire.Response(nil, q.ID, []byte(`{}`))
	case q.Method == "unknown":
		return wire.Failure(nil, q.ID, wire.ErrorObject(wire.MethodNotFound, "no", nil))
	}
	name, _ := wire.Text(wire.Member(q.Params, "name"))
	switch name {
	case "wait":
		s.entered <- q
		select {
		case <-s.free:
		case <-ctx.Done():
			s.ends <- ctx.Err()
		}
	case "say":
		for i := range 3 {
			if err := q.Out.Send(fmt.Appendf(nil, "{\"jsonrpc\":\"2.0\",\r\n\"method\":\"notifications/progress\",\"params\":{\"n\":%d}}", i)); err != nil {
				return wire.Failure(nil, q.ID, wire.ErrorObject(wire.InternalError, err.Error(), nil))
			}
		}
	}
	return wire.Response(nil, q.ID, q.Params)
}

// setup is what a test changes of a front.
type setup struct {
	Settings
	Hooks
	Limits session.Limits
}

// A testFront is a front whose dispatcher can be replaced.
type testFront struct {
	*Front
	dispatch func(context.Context, *session.Request) []byte
}

func (g *testFront) Dispatch(ctx context.Context, q *session.Request) []byte {
	return g.dispatch(ctx, q)
}

// owners authenticates by tokens that are "token-" and the name of their owner.
type owners struct{}

func (owners) Authenticate(r *http.Request) (web.Caller, error) {
	token, ok := web.BearerToken(r)
	if !ok {
		return web.Caller{}, web.ErrNoCredentials
	}
	if name, ok := strings.CutPrefix(token, "token-"); ok && !strings.Contains(name, " ") {
		return web.Caller{Name: name, Token: "id-of-" + name}, nil
	}
	if token == "down" {
		return web.Caller{}, fmt.Errorf("the ledger: %w", web.ErrUnavailable)
	}
	return web.Caller{}, errors.New("unknown")
}

// scripted is a front of two servers before a script. Tokens are "token-" and the name of their owner.
func scripted(t *testing.T, change func(*setup)) (*testFront, *script) {
	t.Helper()
	o := setup{Settings: Settings{
		Servers: []string{"files", "notes"},
		Clients: owners{},
		Hosts:   []string{"gateway.test", "127.0.0.1:8787"},
	}}
	if change != nil {
		change(&o)
	}
	g := &testFront{}
	g.Front = New(o.Settings, o.Hooks, session.NewTable(o.Limits), g)
	s := &script{
		g: g, entered: make(chan *session.Request, 64), free: make(chan struct{}), received: make(chan string, 64), ends: make(chan error, 64),
	}
	g.dispatch = s.dispatch
	return g, s
}

// come makes an HTTP request as a program on this machine would: each of headers is "Name: value", a value of "-" takes one away.
func come(method, path, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host, r.RemoteAddr = "127.0.0.1:8787", "127.0.0.1:40000"
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		switch {
		case value == "-":
			r.Header.Del(name)
		case name == "Host":
			r.Host = value
		case name == "Protocol":
			r.ProtoMajor, r.ProtoMinor, _ = http.ParseHTTPVersion(value)
		case name == "Peer":
			r.RemoteAddr = value
		case strings.HasPrefix(name, "+"):
			r.Header.Add(name[1:], value)
		default:
			r.Header.Set(name, value)
		}
	}
	return r
}

func serve(g *testFront, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	http.Handler(g).ServeHTTP(w, r)
	return w
}

// rpc is a request's text.
func rpc(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`
}

// meta is the _meta of a stateless request, as a member.
const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// begin opens a session over HTTP and returns its id.
func begin(t *testing.T, g *testFront, path, revision string, headers ...string) string {
	t.Helper()
	w := serve(g, come("POST", path, rpc("0", "initialize", `{"protocolVersion":"`+revision+`"}`), headers...))
	id := w.Header().Get(headerSession)
	if w.Code != 200 || len(id) < 26 {
		t.Fatalf("initialize was answered with %d %q, session %q", w.Code, w.Body, id)
	}
	return id
}

// within returns what comes on a channel, soon.
func within[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
	}
	return v
}

// onLoopback serves a gateway on loopback, and returns its address.
func onLoopback(t *testing.T, g *testFront) string {
	t.Helper()
	on, err := loopback.Listen("127.0.0.1:0")
	check.NoError(t, err)
	s := g.active.Load().Settings
	s.Hosts = append(slices.Clone(s.Hosts), loopback.Hosts(on)...)
	g.Replace(s)
	serves(t, g, on)
	return on.Addr().String()
}

// serves has a gateway serve until the end of the test.
func serves(t *testing.T, g *testFront, on net.Listener) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, on, g.Drain) }()
	t.Cleanup(func() {
		cancel()
		if err := within(t, "the end of the gateway", done); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("the gateway ended with %v", err)
		}
	})
}

// An eventReader reads a stream of events.
type eventReader struct {
	t *testing.T
	r *bufio.Reader
}

// next reads one event, comments apart.
func (e *eventReader) next() (name, id, data string, ok bool) {
	e.t.Helper()
	var lines []string
	for {
		line, err := e.r.ReadString('\n')
		if err != nil {
			return "", "", "", false
		}
		line = strings.TrimSuffix(line, "\n")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && name == "" && lines == nil:
		case line == "":
			return name, id, strings.Join(lines, "\n"), true
		case field == "event":
			name = value
		case field == "id":
			id = value
		case field == "data":
			lines = append(lines, value)
		}
	}
}

// do sends a request over the network and returns the response, whose body is closed with the test.
func do(t *testing.T, at, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+at+path, bytes.NewReader([]byte(body)))
	check.NoError(t, err)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	check.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func whole(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	check.NoError(t, err)
	return string(b)
}
