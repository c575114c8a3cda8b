package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/serverrequest"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// downFor is the time during which the gateway does not try an unreachable server again.
const downFor = time.Second

// A serverSession is the part of an [upstream.Link] that the gateway uses. Tests implement it without a transport.
type serverSession interface {
	Link
	ServerInfo() upstream.ServerInfo
	Done() <-chan struct{}
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

// A link is a session with a server and its state in the gateway. The caller of linkTo calls release.
//
//	linkTable   who shares which link: one for all clients, one for each client session
//	linkSlot    one entry: it counts users, and connects in a goroutine of its own
//	link        what the gateway keeps beside the session: lists, log level, subscribers
//	serverSession, in pgfsm *upstream.Link: handshake, permit, transport
type link struct {
	serverSession               // nil until connected is closed, and after that if connecting failed
	connected     chan struct{} // closed when connecting is over

	gateway *Gateway
	server  *server
	session *clientSession // nil if the link is shared or used by a stateless client; else only this session's client uses it
	slot    *linkSlot
	lists   listCache
	watched bool // kept open because its client is subscribed to resources; guarded by the session

	mu          sync.Mutex
	subscribers map[subscriber]struct{}
	level       severity // log level of a server with sessions on a shared link; zero: not set
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

func (l *link) release() { l.slot.release() }

// linkTo returns the client's link with a server. By default the clients of one identity share it. If the operator wants a separate session
// for each client, the link belongs to the client's session, or stateless requests of the same identity and capabilities share it.
func (g *Gateway) linkTo(ctx context.Context, q *request, server *server) (*link, error) {
	dedicated := q.session != nil && server.separate()
	table, key := &g.shared, linkKey{
		client:       q.From,
		server:       server,
		protocol:     session.Stateless,
		capabilities: `{}`,
	}
	switch {
	case dedicated:
		table, key = &q.session.links, linkKey{server: server}
	case q.session != nil:
		key.protocol = q.session.Protocol
	case server.separate() && !server.currentState().knownStateful():
		key.capabilities = string(forServer(q.capabilities, server))
	}
	if server.Sessions == upstream.SessionsOne {
		key.client = Identity{}
	}

	l, err := table.get(ctx, key, func(ctx context.Context) (*link, error) {
		if dedicated {
			s := q.session
			return g.connectLink(ctx, s, server, upstream.Peer{
				Owner:        s.Client.Owner(),
				Protocol:     s.Protocol,
				Capabilities: forServer(s.capabilities, server),
			})
		}
		return g.connectLink(ctx, nil, server, upstream.Peer{
			Owner:        key.client.Owner(),
			Protocol:     key.protocol,
			Capabilities: jsontext.Value(key.capabilities),
		})
	})
	if err == nil && q.session != nil {
		q.session.join(l)
	}
	return l, err
}

// useLink calls use with the client's link with a server. If repeat is set, and the link is retired meanwhile because the server has lost
// the session, it calls use once more with the next link. A list is safe to repeat.
func (g *Gateway) useLink(ctx context.Context, q *request, server *server, repeat bool, use func(*link) error) error {
	for {
		l, err := g.linkTo(ctx, q, server)
		if err != nil {
			return err
		}
		err = use(l)
		lost := err != nil && l.Retired()
		l.release()
		if !lost || !repeat {
			return err
		}
		repeat = false
	}
}

// forServer returns a client's capabilities for a server: those that the operator exposes.
func forServer(c serverrequest.Capabilities, server *server) jsontext.Value {
	e := server.Expose
	return c.ForServer(e.Includes(ExposeSampling), e.Includes(ExposeElicitation), e.Includes(ExposeRoots))
}

// upstreamContext returns the context of a request at its server. A server
// whose cancellation is not exposed does not learn that the client cancels.
func upstreamContext(ctx context.Context, server *server) context.Context {
	if server.Expose.Includes(ExposeCancellation) {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// connectLink connects to a server, for a session or for all clients that share the link.
func (g *Gateway) connectLink(ctx context.Context, s *clientSession, server *server, p upstream.Peer) (*link, error) {
	l := &link{connected: make(chan struct{}), gateway: g, server: server, session: s}
	defer close(l.connected)
	p.OnMessage = l.receive
	upstreamLink, err := g.connect(ctx, server, p)
	if err != nil {
		if !tooManyLinks(err) && !server.changeState(func(s *serverState) { s.down = true }).down {
			g.options.Log.Warn("a server cannot be reached", "server", server.Name, "error", err.Error())
		}
		return nil, err
	}

	server.changeState(func(s *serverState) {
		*s = serverState{
			known:     true,
			offers:    readOffers(upstreamLink.ServerInfo().Capabilities),
			stateless: upstreamLink.Modern(),
			unlisted:  s.unlisted,
			leftOut:   s.leftOut,
		}
	})
	l.serverSession = upstreamLink
	l.restoreSession()
	return l, nil
}

// tooManyLinks reports whether connecting failed because too many sessions are open.
func tooManyLinks(err error) bool {
	var no *upstream.LinkError
	return errors.As(err, &no) && no.Code == upstream.CodeLinks
}

// restoreSession sends the client's log level and subscribed resources to a server with sessions, over the new link of a client session.
func (l *link) restoreSession() {
	s := l.session
	if s == nil || l.Modern() {
		return
	}
	s.mu.Lock()
	level := s.level
	s.mu.Unlock()
	offers, uris := l.offersTo(s.Protocol), s.watched(l.server.Name)
	if !offers.include(offersLogging) {
		level = 0
	}
	if !offers.include(offersSubscriptions) { // the operator may have stopped exposing them
		uris = nil
	}
	if level == 0 && len(uris) == 0 {
		return
	}

	go func() {
		ctx, cancel := context.WithTimeout(s.Context, serverrequest.AnswerTimeout)
		defer cancel()
		if level > 0 {
			_, _ = l.Request(ctx, methodSetLevel, levelParams(level), nil) // if it fails, the server chooses the level
		}
		for _, uri := range uris {
			_, _ = l.Request(ctx, methodSubscribe, uriParams(uri), nil) // if it fails, there are no notifications
		}
	}()
}

// A subscriber gets the notifications of a shared link: the [subscription] of a stateless client, or a [clientSession].
type subscriber interface {
	receive(wire.Message) // must not block
}

// addSubscriber sends the link's notifications to a subscriber until remove is called.
func (l *link) addSubscriber(n subscriber) (remove func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.subscribers == nil {
		l.subscribers = make(map[subscriber]struct{})
	}
	l.subscribers[n] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.subscribers, n)
	}
}
