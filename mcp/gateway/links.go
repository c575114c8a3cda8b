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
type serverLink interface {
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
type pool struct {
	shared lines

	mu     sync.Mutex
	hellos map[string]greeting
	down   map[string]bool // the servers that could not be reached when that was last tried
}

// lost notes that a server cannot be reached, and reports whether that is news.
func (p *pool) lost(server string) bool {
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
	offers offers
	modern bool
}

// hello is what a server offered when it was last connected to.
func (p *pool) hello(server string) (offers, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, ok := p.hellos[server]
	return g.offers, ok
}

// legacy reports whether the server is known to speak a revision with sessions.
func (p *pool) legacy(server string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, ok := p.hellos[server]
	return ok && !g.modern
}

func (p *pool) greeted(server string, l serverLink) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hellos == nil {
		p.hellos = make(map[string]greeting)
	}
	delete(p.down, server)
	p.hellos[server] = greeting{readOffers(l.Hello().Capabilities), l.Modern()}
}

// A line is one link and what the gateway keeps of it. Whoever gets one from linkTo gives it back with release.
type line struct {
	serverLink // nil until made is closed, and after that if it could not be made
	made       chan struct{}

	gateway *Gateway
	server  *Server
	owner   *clientSession // nil: shared by the stateless clients of one identity
	slot    *slot

	tools catalogs
	hears
	guest atomic.Pointer[errand] // which has the line for itself; nil: none
}

// native is the link for those who call on it themselves; nil in tests that have no real one.
func (l *line) native() *upstream.Link {
	link, _ := l.serverLink.(*upstream.Link)
	return link
}

// over reports whether the link has ended.
func (l *line) over() bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

func (l *line) release() { l.slot.table.release(l.slot) }

// A lineKey says for whom a link speaks, to whom, and as what.
type lineKey struct {
	who    Identity
	server string
	told   string // the client capabilities that the server was told of
	lane   int    // of those that one request at a time has for itself, from 1; zero: shared
}

// A slot is a place for a link in a table.
type slot struct {
	table *lines
	key   lineKey
	ready chan struct{} // closed when line or err is set
	line  *line
	err   error
	since time.Time // when it failed, or was last used
	uses  int
	timer *time.Timer
}

// settled reports whether the attempt to connect is over.
func (s *slot) settled() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// lines is a table of links: each is made when it is first needed, once, and again when it is needed after it has ended.
type lines struct {
	ctx    context.Context // its end ends the attempts to connect
	cancel context.CancelFunc
	max    int           // links at once
	idle   time.Duration // after which a link that nobody uses is closed; zero: it stays until the table is closed

	mu     sync.Mutex
	slots  map[lineKey]*slot
	closed bool
}

func (t *lines) init(ctx context.Context, most int, idle time.Duration) {
	t.ctx, t.cancel = context.WithCancel(ctx)
	t.max, t.idle, t.slots = most, idle, make(map[lineKey]*slot)
}

var errLinksClosed = &upstream.LinkError{Code: upstream.CodeClosed, Reason: "the session has ended"}

// errTooManyLinks is answered if every link that may be open is in use.
var errTooManyLinks = errors.New("too many links are in use")

// get returns the line of a key, and connects if there is none that works. Several who ask at once wait for one attempt, which
// goes on when one of them gives up.
func (t *lines) get(ctx context.Context, key lineKey, connect func(context.Context) (*line, error)) (*line, error) {
	s, err := t.take(key, connect)
	if err != nil {
		return nil, err
	}
	return t.wait(ctx, s)
}

// wait returns the line of a slot that was taken, once it is there.
func (t *lines) wait(ctx context.Context, s *slot) (*line, error) {
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
func (t *lines) take(key lineKey, connect func(context.Context) (*line, error)) (*slot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken(key, connect)
}

// taken is take for one who holds the lock.
func (t *lines) taken(key lineKey, connect func(context.Context) (*line, error)) (*slot, error) {
	if t.closed {
		return nil, errLinksClosed
	}
	s := t.slots[key]
	if s != nil && s.settled() && (s.err != nil && time.Since(s.since) >= downFor || s.err == nil && s.line.over()) {
		t.drop(s)
		s = nil
	}
	if s == nil {
		if len(t.slots) >= t.max && !t.evict() {
			return nil, errTooManyLinks
		}
		s = &slot{table: t, key: key, ready: make(chan struct{})}
		t.slots[key] = s
		go t.make(s, connect)
	}
	s.use()
	return s, nil
}

// have is get for a line that is there and works; nil: there is none.
func (t *lines) have(key lineKey) *line {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slots[key]
	if t.closed || s == nil || !s.settled() || s.err != nil || s.line.over() {
		return nil
	}
	s.use()
	return s.line
}

// use notes one use more. The table's lock is held.
func (s *slot) use() {
	if s.uses++; s.timer != nil {
		s.timer.Stop()
	}
}

// make fills a slot.
func (t *lines) make(s *slot, connect func(context.Context) (*line, error)) {
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
func (t *lines) release(s *slot) {
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
func (t *lines) expire(s *slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.uses == 0 {
		t.drop(s)
	}
}

// drop takes a slot out of the table and ends its link. The lock is held.
func (t *lines) drop(s *slot) {
	if t.slots[s.key] == s {
		delete(t.slots, s.key)
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.settled() && s.err == nil {
		if s.line.owner != nil {
			s.line.owner.forget(s.line)
		}
		go s.line.Close()
	}
}

// evict makes room: the link goes that nobody has used for longest. It reports whether there is room.
func (t *lines) evict() bool {
	var oldest *slot
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
func (t *lines) open(servers []*Server) (out []*line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, server := range servers {
		for _, s := range t.slots { // in any order: a session has one line for each server
			if s.key.server == server.Name && s.settled() && s.err == nil && !s.line.over() {
				out = append(out, s.line)
			}
		}
	}
	return out
}

// close ends all links. There are none afterwards.
func (t *lines) close() {
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
func (g *Gateway) linkTo(ctx context.Context, q *request, server *Server) (*line, error) {
	if s := q.session; s != nil {
		key := lineKey{server: server.Name}
		if l := s.lines.have(key); l != nil {
			return l, nil
		}
		return s.lines.get(ctx, key, func(ctx context.Context) (*line, error) {
			return g.join(ctx, s.Client, s, server, s.Protocol, s.can.told(server.Expose))
		})
	}
	told := q.can().told(server.Expose)
	if !g.pool.legacy(server.Name) || len(told) == len(`{}`) {
		l, err := g.share(ctx, q, server, told)
		if err != nil || l.Modern() || len(told) == len(`{}`) {
			return l, err
		}
		l.release() // it was not known
		g.pool.shared.expire(l.slot)
	}
	return g.alone(ctx, q, server)
}

// share returns a line for stateless clients.
func (g *Gateway) share(ctx context.Context, q *request, server *Server, told jsontext.Value) (*line, error) {
	key := lineKey{who: q.From, server: server.Name, told: string(told)}
	return g.pool.shared.get(ctx, key, func(ctx context.Context) (*line, error) {
		return g.join(ctx, q.From, nil, server, session.Stateless, told)
	})
}

// join makes a link.
func (g *Gateway) join(ctx context.Context, who Identity, owner *clientSession, server *Server, protocol string, told jsontext.Value) (*line, error) {
	l := &line{made: make(chan struct{}), gateway: g, server: server, owner: owner}
	defer close(l.made)
	up, err := g.connect(ctx, server.Name, upstream.Peer{
		Owner: who.Name, Protocol: protocol, Capabilities: told, Tell: l.heard, Rounds: server.Expose.Has(ExposeInputRequired),
	})
	if err != nil {
		if g.pool.lost(server.Name) {
			g.options.Log.Warn("a server cannot be reached", "server", server.Name, "error", err.Error())
		}
		return nil, err
	}
	g.pool.greeted(server.Name, up)
	l.serverLink = up
	l.follow()
	return l, nil
}
