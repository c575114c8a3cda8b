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

// downFor is for how long an unreachable server is not tried again.
const downFor = time.Second

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
	Use() bool
	Release()
	Idle() bool
	Process() bool
	Retired() bool
	Close()
}

// A linkPool is what all clients share.
type linkPool struct {
	shared linkTable

	mu      sync.Mutex
	servers map[*server]serverState
}

// A serverState is what the gateway knows of a server since it last tried to connect.
type serverState struct {
	known     bool // the others are those of the last link
	offers    offers
	stateless bool
	down      bool // it could not be reached
	unlisted  bool // its last list of tools failed
}

// state returns the state of a server, and changes it then.
func (p *linkPool) state(server *server, change func(*serverState)) serverState {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.servers[server]
	before := s
	if change != nil && !server.retired.Load() {
		change(&s)
		p.servers[server] = s
	}
	return before
}

// forget drops the state of a server that was replaced.
func (p *linkPool) forget(server *server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.servers, server)
}

// offersOf is what a server offered when last connected.
func (p *linkPool) offersOf(server *server) (o offers, known bool) {
	s := p.state(server, nil)
	return s.offers, s.known
}

// knownStateful reports whether the server is known to speak a revision with sessions.
func (p *linkPool) knownStateful(server *server) bool {
	s := p.state(server, nil)
	return s.known && !s.stateless
}

// A link is a link with a server and its state in the gateway. The caller of linkTo calls release.
type link struct {
	upstreamSession // nil until connected is closed, and after that if connecting failed
	connected       chan struct{}

	gateway *Gateway
	server  *server
	session *clientSession // whose client alone uses it; nil: it is shared, or a stateless client uses it
	slot    *linkSlot

	catalog atomic.Pointer[catalog]
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

// linkTo returns the client's link with a server. By default it is shared by the clients of one identity. If the operator wants a session of the
// server for each client, it is that of the client's session; one that stateless requests of the same identity and capabilities share; or, if the
// server may send questions, a dedicated one.
func (g *Gateway) linkTo(ctx context.Context, q *request, server *server) (*link, error) {
	if !server.separate() {
		l, err := g.sharedLink(ctx, q, server, jsontext.Value(`{}`))
		if err == nil && q.session != nil {
			q.session.join(l)
		}
		return l, err
	}
	if s := q.session; s != nil {
		l, err := s.links.get(ctx, linkKey{server: server}, func(ctx context.Context) (*link, error) {
			return g.connectLink(ctx, s.Client, s, server, s.Protocol, forServer(s.capabilities, server))
		})
		if err == nil {
			s.join(l)
		}
		return l, err
	}
	capabilities := q.capabilitiesFor(server)
	if !g.pool.knownStateful(server) || len(capabilities) == len(`{}`) {
		l, err := g.sharedLink(ctx, q, server, capabilities)
		if err != nil || l.Modern() || len(capabilities) == len(`{}`) {
			return l, err
		}
		l.release() // the server turned out to have sessions
		g.pool.shared.expire(l.slot)
	}
	return g.dedicatedLink(ctx, q, server)
}

// listOver has a server list something over the client's link. If that retires the link, because the server has lost the session, the server
// lists it once more over the next link. A list is safe to repeat.
func listOver[T any](ctx context.Context, g *Gateway, q *request, server *server, list func(*link) (T, error)) (T, error) {
	for again := false; ; again = true {
		l, err := g.linkTo(ctx, q, server)
		if err != nil {
			var none T
			return none, err
		}
		listed, err := list(l)
		lost := err != nil && l.Retired()
		l.release()
		if !lost || again {
			return listed, err
		}
	}
}

// separate reports whether each client's session has its own sessions with the server. Only then may the server ask clients anything, and
// notify them of resources: on a shared link nothing says whom it means.
func (s *server) separate() bool { return s.Sessions == upstream.SessionsSession }

// sharedKey is the key of the link that a client shares with others.
func sharedKey(q *request, server *server, capabilities jsontext.Value) linkKey {
	key := linkKey{client: q.From, server: server, protocol: session.Stateless, capabilities: string(capabilities)}
	if q.session != nil {
		key.protocol = q.session.Protocol
	}
	if server.Sessions == upstream.SessionsOne {
		key.client = Identity{}
	}
	return key
}

func (g *Gateway) sharedLink(ctx context.Context, q *request, server *server, capabilities jsontext.Value) (*link, error) {
	key := sharedKey(q, server, capabilities)
	return g.pool.shared.get(ctx, key, func(ctx context.Context) (*link, error) {
		return g.connectLink(ctx, key.client, nil, server, key.protocol, capabilities)
	})
}

// connectLink connects to a server.
func (g *Gateway) connectLink(ctx context.Context, client Identity, s *clientSession, server *server, protocol string,
	capabilities jsontext.Value) (*link, error) {
	l := &link{connected: make(chan struct{}), gateway: g, server: server, session: s}
	defer close(l.connected)
	up, err := g.connect(ctx, server, upstream.Peer{
		Owner: client.Owner(), Protocol: protocol, Capabilities: capabilities, Tell: l.receive, Rounds: server.Expose.Has(ExposeInputRequired),
	})
	if err != nil {
		if !tooManyLinks(err) && !g.pool.state(server, func(s *serverState) { s.down = true }).down {
			g.options.Log.Warn("a server cannot be reached", "server", server.Name, "error", err.Error())
		}
		return nil, err
	}
	g.pool.state(server, func(s *serverState) {
		*s = serverState{known: true, offers: readOffers(up.Hello().Capabilities), stateless: up.Modern(), unlisted: s.unlisted}
	})
	l.upstreamSession = up
	l.restoreState()
	return l, nil
}
