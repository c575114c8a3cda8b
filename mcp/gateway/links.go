package gateway

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// Bounds of the links that stateless clients share. A session has its own, one for each server.
const (
	maxShared  = 256             // links with all servers together
	sharedIdle = 5 * time.Minute // after which a link that nobody uses is closed
	downFor    = time.Second     // for which a server that could not be reached is not tried again
)

// A serverLink is what is used of a [upstream.Link].
type upstreamSession interface {
	Hello() upstream.Hello
	Modern() bool
	Done() <-chan struct{}
	GaveUp() bool
	Request(ctx context.Context, method string, params []byte, on func(wire.Message)) (upstream.Reply, error)
	Notify(ctx context.Context, method string, params []byte) error
	Answer(ctx context.Context, id, result, failed jsontext.Value) error
	Listing(ctx context.Context, maxAge time.Duration) (*upstream.Kept, error)
	Close()
}

// A pool is what all clients have in common.
type linkPool struct {
	shared linkTable

	mu     sync.Mutex
	greetings map[string]greeting
	down   map[string]bool // the servers that could not be reached when that was last tried
}

// lost notes that a server cannot be reached, and reports whether that is news.
func (p *linkPool) setDown(server string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down == nil {
		p.down = make(map[string]bool)
	}
	was := p.down[server]
	p.down[server] = true
	return !was
}

// A greeting is what a server last said of itself.
type greeting struct {
	capabilities serverCapabilities
	stateless bool
}

// hello is what a server offered when it was last connected to.
func (p *linkPool) capabilitiesOf(server string) (serverCapabilities, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, ok := p.greetings[server]
	return g.capabilities, ok
}

// legacy reports whether the server is known to speak a revision with sessions.
func (p *linkPool) knownStateful(server string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, ok := p.greetings[server]
	return ok && !g.stateless
}

func (p *linkPool) setGreeting(server string, l upstreamSession) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.greetings == nil {
		p.greetings = make(map[string]greeting)
	}
	delete(p.down, server)
	p.greetings[server] = greeting{readServerCapabilities(l.Hello().Capabilities), l.Modern()}
}

// A line is one link and what the gateway keeps of it. Whoever gets one from linkTo gives it back with release.
type link struct {
	upstreamSession // nil until made is closed, and after that if it could not be made
	connected       chan struct{}

	gateway *Gateway
	server  *Server
	session   *clientSession // nil: shared by the stateless clients of one identity
	slot    *linkSlot

	tools catalogCache
	linkSubscriptions
	pending atomic.Pointer[pendingRequest] // which has the line for itself; nil: none
}

// native is the link for those who call on it themselves; nil in tests that have no real one.
func (l *link) upstreamLink() *upstream.Link {
	link, _ := l.upstreamSession.(*upstream.Link)
	return link
}

// over reports whether the link has ended.
func (l *link) ended() bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

func (l *link) release() { l.slot.table.release(l.slot) }

// A lineKey says for whom a link speaks, to whom, and as what.
type linkKey struct {
	who    Identity
	server string
	capabilities   string // the client capabilities that the server was told of
	dedicated   int    // of those that one request at a time has for itself, from 1; zero: shared
}

// A slot is a place for a link in a table.
type linkSlot struct {
	table *linkTable
	key   linkKey
	ready chan struct{} // closed when line or err is set
	line  *link
	err   error
	since time.Time // when it failed, or was last used
	uses  int
	timer *time.Timer
}

// settled reports whether the attempt to connect is over.
func (s *linkSlot) settled() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// lines is a table of links: each is made when it is first needed, once, and again when it is needed after it has ended.
type linkTable struct {
	ctx    context.Context // its end ends the attempts to connect
	cancel context.CancelFunc
	max    int           // links at once
	idle   time.Duration // after which a link that nobody uses is closed; zero: it stays until the table is closed

	mu     sync.Mutex
	slots  map[linkKey]*linkSlot
	closed bool
}

func (t *linkTable) init(ctx context.Context, most int, idle time.Duration) {
	t.ctx, t.cancel = context.WithCancel(ctx)
	t.max, t.idle, t.slots = most, idle, make(map[linkKey]*linkSlot)
}

var errLinksClosed = &upstream.LinkError{Code: upstream.CodeClosed, Reason: "the session has ended"}

// errTooManyLinks is answered if every link that may be open is in use.
var errTooManyLinks = errors.New("too many links are in use")

// get returns the line of a key, and connects if there is none that works. Several who ask at once wait for one attempt, which
// goes on when one of them gives up.
func (t *linkTable) get(ctx context.Context, key linkKey, connect func(context.Context) (*link, error)) (*link, error) {
	s, err := t.take(key, connect)
	if err != nil {
		return nil, err
	}
	return t.wait(ctx, s)
}

// wait returns the line of a slot that was taken, once it is there.
func (t *linkTable) wait(ctx context.Context, s *linkSlot) (*link, error) {
	select {
	case <-s.ready:
	case <-ctx.Done():
		t.release(s)
		return nil, context.Cause(ctx)
	}
	if s.err != nil {
		t.release(s)
		return nil, s.err
	}
	return s.line, nil
}

// take returns the slot of a key, with one use more.
func (t *linkTable) take(key linkKey, connect func(context.Context) (*link, error)) (*linkSlot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.takeLocked(key, connect)
}

// taken is take for one who holds the lock.
func (t *linkTable) takeLocked(key linkKey, connect func(context.Context) (*link, error)) (*linkSlot, error) {
	if t.closed {
		return nil, errLinksClosed
	}
	s := t.slots[key]
	if s != nil && s.settled() && (s.err != nil && time.Since(s.since) >= downFor || s.err == nil && s.line.ended()) {
		t.drop(s)
		s = nil
	}
	if s == nil {
		if len(t.slots) >= t.max && !t.evict() {
			return nil, errTooManyLinks
		}
		s = &linkSlot{table: t, key: key, ready: make(chan struct{})}
		t.slots[key] = s
		go t.connect(s, connect)
	}
	s.use()
	return s, nil
}

// have is get for a line that is there and works; nil: there is none.
func (t *linkTable) existing(key linkKey) *link {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slots[key]
	if t.closed || s == nil || !s.settled() || s.err != nil || s.line.ended() {
		return nil
	}
	s.use()
	return s.line
}

// use notes one use more. The table's lock is held.
func (s *linkSlot) use() {
	if s.uses++; s.timer != nil {
		s.timer.Stop()
	}
}

// make fills a slot.
func (t *linkTable) connect(s *linkSlot, connect func(context.Context) (*link, error)) {
	l, err := connect(t.ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && t.slots[s.key] != s { // dropped meanwhile
		go l.Close()
		err = errLinksClosed
	}
	s.line, s.err, s.since = l, err, time.Now()
	if err == nil {
		l.slot = s
	}
	close(s.ready)
}

// release takes a use back.
func (t *linkTable) release(s *linkSlot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.uses--; s.uses > 0 || t.idle == 0 {
		return
	}
	if s.err == nil {
		s.since = time.Now()
	}
	if s.timer == nil {
		s.timer = time.AfterFunc(t.idle, func() { t.expire(s) })
	} else {
		s.timer.Reset(t.idle)
	}
}

// expire closes a link that nobody has used for long.
func (t *linkTable) expire(s *linkSlot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.uses == 0 {
		t.drop(s)
	}
}

// drop takes a slot out of the table and ends its link. The lock is held.
func (t *linkTable) drop(s *linkSlot) {
	if t.slots[s.key] == s {
		delete(t.slots, s.key)
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.settled() && s.err == nil {
		if s.line.session != nil {
			s.line.session.forgetRequestsOf(s.line)
		}
		go s.line.Close()
	}
}

// evict makes room: the link goes that nobody has used for longest. It reports whether there is room.
func (t *linkTable) evict() bool {
	var oldest *linkSlot
	for _, s := range t.slots { // in any order: the oldest is wanted
		if s.uses == 0 && s.settled() && (oldest == nil || s.since.Before(oldest.since)) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	t.drop(oldest)
	return true
}

// open are the lines that work now, in the order of the servers.
func (t *linkTable) working(servers []*Server) (out []*link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, server := range servers {
		for _, s := range t.slots { // in any order: a session has one line for each server
			if s.key.server == server.Name && s.settled() && s.err == nil && !s.line.ended() {
				out = append(out, s.line)
			}
		}
	}
	return out
}

// close ends all links. There are none afterwards.
func (t *linkTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.cancel()
	for _, s := range t.slots { // in any order: all are ended
		t.drop(s)
	}
}

// linkTo returns the line that the request's client has to a server: its session's, one that it shares with requests of the
// same identity and capabilities, or, where the server may ask by itself, one that no other request has meanwhile.
func (g *Gateway) linkTo(ctx context.Context, q *request, server *Server) (*link, error) {
	if s := q.session; s != nil {
		key := linkKey{server: server.Name}
		if l := s.links.existing(key); l != nil {
			return l, nil
		}
		return s.links.get(ctx, key, func(ctx context.Context) (*link, error) {
			return g.connectLink(ctx, s.Client, s, server, s.Protocol, s.capabilities.forServer(server.Expose))
		})
	}
	told := q.capabilities().forServer(server.Expose)
	if !g.pool.knownStateful(server.Name) || len(told) == len(`{}`) {
		l, err := g.sharedLink(ctx, q, server, told)
		if err != nil || l.Modern() || len(told) == len(`{}`) {
			return l, err
		}
		l.release() // it was not known
		g.pool.shared.expire(l.slot)
	}
	return g.dedicatedLink(ctx, q, server)
}

// share returns a line for stateless clients.
func (g *Gateway) sharedLink(ctx context.Context, q *request, server *Server, told jsontext.Value) (*link, error) {
	key := linkKey{who: q.From, server: server.Name, capabilities: string(told)}
	return g.pool.shared.get(ctx, key, func(ctx context.Context) (*link, error) {
		return g.connectLink(ctx, q.From, nil, server, session.Stateless, told)
	})
}

// join makes a link.
func (g *Gateway) connectLink(ctx context.Context, who Identity, owner *clientSession, server *Server, protocol string, told jsontext.Value) (*link, error) {
	l := &link{connected: make(chan struct{}), gateway: g, server: server, session: owner}
	defer close(l.connected)
	up, err := g.connect(ctx, server.Name, upstream.Peer{
		Owner: who.Name, Protocol: protocol, Capabilities: told, Tell: l.receive, Rounds: server.Expose.Has(ExposeInputRequired),
	})
	if err != nil {
		if g.pool.setDown(server.Name) {
			g.options.Log.Warn("a server cannot be reached", "server", server.Name, "error", err.Error())
		}
		return nil, err
	}
	g.pool.setGreeting(server.Name, up)
	l.upstreamSession = up
	l.restoreState()
	return l, nil
}
