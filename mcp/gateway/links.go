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

// Bounds of the links of stateless clients. A session has one link with each server.
const (
	maxShared  = 256             // of links with all servers
	sharedIdle = 5 * time.Minute // after which an unused link is closed
	downFor    = time.Second     // for which an unreachable server is not tried again
)

// An upstreamSession is what the gateway uses of an [upstream.Link]. Tests have servers without a transport.
type upstreamSession interface {
	Link
	Hello() upstream.Hello
	Modern() bool
	Done() <-chan struct{}
	GaveUp() bool
	Request(ctx context.Context, method string, params []byte, on func(wire.Message)) (upstream.Reply, error)
	Notify(ctx context.Context, method string, params []byte) error
	Answer(ctx context.Context, id, result, failed jsontext.Value) error
	Close()
}

// A linkPool is what all clients share.
type linkPool struct {
	shared linkTable

	mu        sync.Mutex
	greetings map[string]greeting
	down      map[string]bool // servers that could not be reached when last tried
}

// setDown notes that a server cannot be reached, and reports whether it could before.
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

// A greeting is what a server said of itself when last connected.
type greeting struct {
	capabilities serverCapabilities
	stateless    bool
}

// capabilitiesOf are the capabilities of a server when last connected.
func (p *linkPool) capabilitiesOf(server string) (serverCapabilities, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, ok := p.greetings[server]
	return g.capabilities, ok
}

// knownStateful reports whether the server is known to speak a revision with sessions.
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

// A link is a link with a server and its state in the gateway. The caller of linkTo calls release.
type link struct {
	upstreamSession // nil until connected is closed, and after that if connecting failed
	connected       chan struct{}

	gateway *Gateway
	server  *Server
	session *clientSession // nil: stateless clients of one identity use it
	slot    *linkSlot

	tools catalogCache
	linkSubscriptions
	pending atomic.Pointer[ask.Pending] // whose client gets the server's questions; nil: none
}

// ended reports whether the link is over.
func (l *link) ended() bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

func (l *link) release() { l.slot.table.release(l.slot) }

// linkTo returns the client's link with a server: that of its session; one that it shares with stateless requests of the same identity and
// capabilities; or, if the server may send questions, a dedicated one.
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
	capabilities := q.capabilitiesFor(server)
	if !g.pool.knownStateful(server.Name) || len(capabilities) == len(`{}`) {
		l, err := g.sharedLink(ctx, q, server, capabilities)
		if err != nil || l.Modern() || len(capabilities) == len(`{}`) {
			return l, err
		}
		l.release() // the server turned out to have sessions
		g.pool.shared.expire(l.slot)
	}
	return g.dedicatedLink(ctx, q, server)
}

// sharedLink returns a link for stateless clients.
func (g *Gateway) sharedLink(ctx context.Context, q *request, server *Server, capabilities jsontext.Value) (*link, error) {
	key := linkKey{client: q.From, server: server.Name, capabilities: string(capabilities)}
	return g.pool.shared.get(ctx, key, func(ctx context.Context) (*link, error) {
		return g.connectLink(ctx, q.From, nil, server, session.Stateless, capabilities)
	})
}

// connectLink connects to a server.
func (g *Gateway) connectLink(ctx context.Context, client Identity, s *clientSession, server *Server, protocol string,
	capabilities jsontext.Value) (*link, error) {
	l := &link{connected: make(chan struct{}), gateway: g, server: server, session: s}
	defer close(l.connected)
	up, err := g.connect(ctx, server.Name, upstream.Peer{
		Owner: client.Name, Protocol: protocol, Capabilities: capabilities, Tell: l.receive, Rounds: server.Expose.Has(ExposeInputRequired),
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
