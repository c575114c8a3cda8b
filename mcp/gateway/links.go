package gateway

import (
	"context"
	"errors"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// An upstreamLink is the part of an [upstream.Link] that the gateway uses. Tests implement it
// without a transport.
type upstreamLink interface {
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

// A linkKey says which clients share a link, and with which server.
type linkKey struct {
	server       *server
	session      *clientSession // nil: the link is shared by client sessions, or used by stateless clients
	client       Identity       // zero: all clients
	protocol     string         // revision of the clients
	capabilities string         // capabilities of the clients, as the server knows them
}

// A link is a session with a server, and what the gateway keeps beside it. The caller of linkTo
// calls release.
//
//	linkTable      holds each link by its key, and connects it in a goroutine of its own
//	link           counts its users, and keeps lists, log level and subscribers
//	upstreamLink   in pgfsm *upstream.Link: handshake, permit, transport
type link struct {
	upstreamLink               // set when ready is closed; nil if connecting failed
	ready        chan struct{} // closed when connecting is over
	err          error         // set when ready is closed: connecting failed

	gateway *Gateway
	key     linkKey
	server  *server        // the key's
	session *clientSession // the key's
	watched bool           // kept open because its client is subscribed to resources; guarded by the session

	// The table's lock guards these.
	uses  int // number of uses by requests
	keeps int // number of uses by clients; while one of both is positive, the link has one use of its session

	mu          sync.Mutex
	lists       map[string]*serverList // the last lists, by method
	subscribers map[subscriber]struct{}
	level       severity // log level of a server with sessions on a shared link; zero: not set
}

// hasEnded reports whether the link is over.
func (l *link) hasEnded() bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

// linkTo returns the client's link with a server. By default the clients of one identity share it.
// If the operator wants a separate session for each client, the link belongs to the client's
// session, or stateless requests of the same identity and capabilities share it.
func (g *Gateway) linkTo(ctx context.Context, q *request, server *server) (*link, error) {
	key := linkKey{server: server, client: q.From, protocol: session.Stateless, capabilities: `{}`}
	if q.session != nil {
		key.protocol = q.session.Protocol
	}
	if server.Sessions == upstream.SessionsOne {
		key.client = Identity{}
	}
	if server.separatesSessions() {
		key.session, key.capabilities = q.session, q.capabilities.forServer(server)
	}

	l, err := g.links.connectedLink(ctx, key)
	if err == nil && q.session != nil {
		q.session.joinLink(l)
	}
	return l, err
}

// useLink calls use with the client's link with a server. If repeat is set, and the link is retired
// meanwhile because the server has lost the session, it calls use once more with the next link. A
// list is safe to repeat.
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

// upstreamContext returns the context of a request at its server. A server
// whose cancellation is not exposed does not learn that the client cancels.
func upstreamContext(ctx context.Context, server *server) context.Context {
	if server.Expose.Includes(ExposeCancellation) {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// open connects to the link's server.
func (l *link) open(ctx context.Context) (upstreamLink, error) {
	opened, err := l.gateway.openUpstream(ctx, l.server, upstream.Peer{
		Owner:        l.key.client.Owner(),
		Protocol:     l.key.protocol,
		Capabilities: jsontext.Value(l.key.capabilities),
		OnMessage:    l.receive,
	})
	if err != nil {
		if !tooManyLinks(err) && !l.server.changeState(func(s *serverState) { s.down = true }).down {
			l.gateway.options.Log.Warn("a server cannot be reached", "server", l.server.Name, "error", err.Error())
		}
		return nil, err
	}

	l.server.changeState(func(s *serverState) {
		*s = serverState{
			known:     true,
			offers:    readOffers(opened.ServerInfo().Capabilities),
			stateless: opened.Modern(),
			unlisted:  s.unlisted,
			leftOut:   s.leftOut,
		}
	})

	return opened, nil
}

// tooManyLinks reports whether connecting failed because too many sessions are open.
func tooManyLinks(err error) bool {
	var no *upstream.LinkError
	return errors.As(err, &no) && no.Code == upstream.CodeLinks
}

// restoreSession sends the client's log level and subscribed resources to a server with sessions,
// over the new link of a client session.
func (l *link) restoreSession() {
	s := l.session
	if s == nil || l.Modern() {
		return
	}

	s.mu.Lock()
	level := s.level
	s.mu.Unlock()
	offers, uris := l.offersTo(s.Protocol), s.watchedResources(l.server.Name)
	if !offers.includes(offersLogging) {
		level = 0
	}

	if !offers.includes(offersSubscriptions) { // the operator may have stopped exposing them
		uris = nil
	}

	if level == 0 && len(uris) == 0 {
		return
	}

	go func() {
		ctx, cancel := context.WithTimeout(s.Context, answerTimeout)
		defer cancel()
		if level > 0 {
			// If it fails, the server chooses the level.
			_, _ = l.Request(ctx, methodSetLevel, levelParams(level), nil)
		}
		for _, uri := range uris {
			// If it fails, there are no notifications.
			_, _ = l.Request(ctx, methodSubscribe, uriParams(uri), nil)
		}
	}()
}

// A subscriber gets the notifications of a shared link: the [subscription] of a stateless client,
// or a [clientSession].
type subscriber interface {
	receive(wire.Message) // must not block
}

// addSubscriber sends the link's notifications to a subscriber until removeSubscriber is called.
func (l *link) addSubscriber(n subscriber) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.subscribers == nil {
		l.subscribers = make(map[subscriber]struct{})
	}
	l.subscribers[n] = struct{}{}
}

func (l *link) removeSubscriber(n subscriber) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.subscribers, n)
}
