package gateway

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/ask"
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

	mu        sync.Mutex
	greetings map[string]greeting
	down      map[string]bool // the servers that could not be reached when that was last tried
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
	stateless    bool
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
	session *clientSession // nil: shared by the stateless clients of one identity
	slot    *linkSlot

	tools catalogCache
	linkSubscriptions
	pending atomic.Pointer[ask.Pending] // which has the line for itself; nil: none
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

// linkTo returns the line that the request's client has to a server: its session's, one that it shares with requests of the
// same identity and capabilities, or, where the server may ask by itself, one that no other request has meanwhile.
func (g *Gateway) linkTo(ctx context.Context, q *request, server *Server) (*link, error) {
	if s := q.session; s != nil {
		key := linkKey{server: server.Name}
		if l := s.links.existing(key); l != nil {
			return l, nil
		}
		return s.links.get(ctx, key, func(ctx context.Context) (*link, error) {
			return g.connectLink(ctx, s.Client, s, server, s.Protocol, forServer(s.capabilities, server))
		})
	}
	told := q.capabilitiesFor(server)
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
	key := linkKey{client: q.From, server: server.Name, capabilities: string(told)}
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
