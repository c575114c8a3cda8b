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

// A Link is the session with the server of a call. This package's *link implements it, with the
// methods of its *upstream.Link.
type Link interface {
	Listing(ctx context.Context, maxAge time.Duration) (*upstream.CachedListing, error)
	Changed(number uint64) bool
	Modern() bool // the server speaks the stateless revision
	// Call sends the one tools/call: mcp/upstream/send_call.go.
	Call(ctx context.Context, c upstream.Call, onMessage func(wire.Message)) upstream.Returned
}

// A linkKey says which clients share a link, and with which server.
type linkKey struct {
	server       *server
	session      *clientSession // nil: the link is shared by client sessions, or used by stateless clients
	client       Identity       // zero: all clients
	account      string         // id of the account of the clients' person; empty: none
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
	server  *server           // the key's
	session *clientSession    // the key's
	account *upstream.Account // the key's
	live    context.Context   // ends with the account
	end     context.CancelFunc
	checked atomic.Bool // see recheckAccount
	watched bool        // kept open because its client is subscribed to resources; guarded by the session

	// The table's lock guards these.
	uses  int // number of uses by requests
	keeps int // number of uses by clients; while one of both is positive, the link has one use of its session

	mu          sync.Mutex
	lists       map[string]*serverList // the last lists, by method
	subscribers map[subscriber]struct{}
	level       severity // log level of a server with sessions on a shared link; zero: not set
}

// connectLink implements ToolCall.Connect. It replaces a link whose session the server has lost.
func (c *ToolCall) connectLink(ctx context.Context) (Link, error) {
	if c.Unconnected != nil {
		return nil, c.Unconnected
	}
	if c.link != nil && !c.link.Retired() {
		return c.link, nil
	}
	l, err := c.request.gateway.linkWith(ctx, c.request, c.server, c.Account)
	if err != nil {
		return nil, err
	}
	if c.link != nil {
		c.link.release()
	}
	c.link = l
	return l, nil
}

// releaseLink releases the link.
func (c *ToolCall) releaseLink() {
	if c.link != nil {
		c.link.release()
	}
}

// linkTo returns the client's link with a server. By default the clients of one identity share it.
// If the operator wants a separate session for each client, the link belongs to the client's
// session, or stateless requests of the same identity and capabilities share it.
func (g *Gateway) linkTo(ctx context.Context, q *request, server *server) (*link, error) {
	account, err := g.accountOf(ctx, q, server)
	if err != nil {
		return nil, err
	}
	return g.linkWith(ctx, q, server, account)
}

// linkWith is linkTo for an account of the client's person; nil for none.
func (g *Gateway) linkWith(ctx context.Context, q *request, server *server, account *upstream.Account) (*link, error) {
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

	if account != nil {
		key.account = account.ID
	}

	l, err := g.links.connectedLink(ctx, key, account)
	if err != nil {
		return nil, err
	}
	if err := g.recheckAccount(ctx, q, l); err != nil {
		l.release()
		return nil, err
	}
	if q.session != nil {
		q.session.joinLink(l)
	}
	return l, nil
}

// A linkTable opens each link when it is first needed, and again after it has ended or could not be
// opened. Package upstream bounds the links, and closes unused ones.
type linkTable struct {
	gateway *Gateway
	ctx     context.Context // its end stops all connecting
	cancel  context.CancelFunc

	mu     sync.Mutex
	links  map[linkKey]*link
	opened chan struct{} // closed and replaced when a link is opened
	people chan struct{} // closed and replaced when the accounts of people have changed
	closed bool
}

func newLinkTable(g *Gateway) *linkTable {
	t := &linkTable{gateway: g, links: make(map[linkKey]*link), opened: make(chan struct{}), people: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// connectedLink returns the link of a key, and connects if there is none. Concurrent callers
// wait for the same attempt, which continues when one of them gives up.
func (t *linkTable) connectedLink(ctx context.Context, key linkKey, account *upstream.Account) (*link, error) {
	l, err := t.acquireLink(key, account)
	if err != nil {
		return nil, err
	}

	select {
	case <-l.ready:
		err = l.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

// acquireLink returns the link of a key, which may still be connecting, and counts a user.
func (t *linkTable) acquireLink(key linkKey, account *upstream.Account) (*link, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// A link that its server has lost, or that was closed as unused, makes room for a new one.
	l := t.links[key]
	if l != nil && l.isSettled() && !l.startReuse() {
		if l.uses > 0 {
			delete(t.links, key) // the link ends with the requests that are under way
		} else {
			t.dropLink(l)
		}
		l = nil
	}

	if l == nil {
		if t.closed || key.session != nil && key.session.linksClosed {
			return nil, errLinksClosed
		}
		l = &link{
			ready:   make(chan struct{}),
			gateway: t.gateway,
			key:     key,
			server:  key.server,
			session: key.session,
			account: account,
		}
		l.live, l.end = context.WithCancel(t.ctx)
		t.links[key] = l
		go t.openLink(l)
	}

	l.uses++
	return l, nil
}

// openLink connects a link.
func (t *linkTable) openLink(l *link) {
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	if l.session != nil {
		defer context.AfterFunc(l.session.Context, cancel)()
	}

	opened, err := l.connectServer(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	defer close(l.ready)

	// The lock was free while the server was connected: the link may have been dropped, or its
	// session may have ended after its last request.
	if err == nil && (t.links[l.key] != l || l.uses == 0 && l.isOutlived()) {
		go opened.Close()
		err = errLinksClosed
	}

	if err != nil {
		l.err = err
		t.dropLink(l)
		return
	}

	l.upstreamLink = opened
	if l.uses == 0 {
		l.Release()
	}

	l.restoreSession()
	close(t.opened)
	t.opened = make(chan struct{})
	go func() {
		<-opened.Done()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.dropLink(l)
	}()
}

// connectServer connects to the link's server.
func (l *link) connectServer(ctx context.Context) (upstreamLink, error) {
	opened, err := l.gateway.openUpstream(ctx, l.server, upstream.Peer{
		Owner:        l.key.client.Owner(),
		Account:      l.account,
		Protocol:     l.key.protocol,
		Capabilities: jsontext.Value(l.key.capabilities),
		OnMessage:    l.receive,
	})
	if err != nil {
		// A client that went away says nothing about the server, and neither does a person's account.
		if ctx.Err() == nil && !tooManyLinks(err) && !upstream.RefusesAccount(err) && !l.server.changeState(func(s *serverState) { s.down = true }).down {
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

// openUpstream connects to a server. Tests replace it.
func openUpstream(ctx context.Context, s *server, p upstream.Peer) (upstreamLink, error) {
	l, err := s.upstreams.Link(ctx, s.Name, p)
	if err != nil {
		return nil, err // a nil *upstream.Link in the interface would not be nil
	}
	return l, nil
}

// tooManyLinks reports whether connecting failed because too many sessions are open.
func tooManyLinks(err error) bool {
	var no *upstream.LinkError
	return errors.As(err, &no) && no.Code == upstream.CodeLinks
}

// dropLink removes a link and closes it. The caller has the lock.
func (t *linkTable) dropLink(l *link) {
	if t.links[l.key] == l {
		delete(t.links, l.key)
	}
	l.end()
	if l.isSettled() && l.err == nil {
		if l.session != nil {
			l.session.questions.dropQuestions(l)
		}
		go l.Close()
	}
}

// retireServer closes the unused links with a replaced server. The others are closed when they are
// released.
func (t *linkTable) retireServer(server *server) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, l := range t.links { // in any order: each is independent
		if key.server == server && l.uses == 0 {
			t.dropLink(l)
		}
	}
}

// closeSession closes the links that belong to a client session, and opens no others for it. A link
// that a request uses, which tells its server meanwhile that it was cancelled, is closed when it is
// released.
func (t *linkTable) closeSession(s *clientSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.linksClosed = true
	for key, l := range t.links { // in any order: each is independent
		if key.session == s && l.uses == 0 {
			t.dropLink(l)
		}
	}
}

// closeAll closes all links. The table opens no others.
func (t *linkTable) closeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.cancel()
	for _, l := range t.links { // in any order: all are closed
		t.dropLink(l)
	}
}

// workingLinks returns the working links that belong to a session, in the order of the servers.
func (t *linkTable) workingLinks(session *clientSession, servers []*server) (links []*link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, server := range servers {
		for key, l := range t.links { // in any order: a session has one link with each server
			if key.session == session && key.server == server && l.isUsable() {
				links = append(links, l)
			}
		}
	}
	return links
}

// awaitLink waits until the table has a working link for the key. It does not connect.
func (t *linkTable) awaitLink(ctx context.Context, key linkKey) {
	for {
		t.mu.Lock()
		l, opened := t.links[key], t.opened
		found := t.closed || l != nil && l.isUsable()
		t.mu.Unlock()
		if found {
			return
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return
		}
	}
}

// isSettled reports whether connecting is over.
func (l *link) isSettled() bool {
	select {
	case <-l.ready:
		return true
	default:
		return false
	}
}

// isUsable reports whether the link is usable.
func (l *link) isUsable() bool { return l.isSettled() && !l.hasEnded() }

// startReuse reports whether a settled link can serve another user, and starts a use of it.
func (l *link) startReuse() bool {
	return !l.Retired() && l.live.Err() == nil && (l.uses+l.keeps > 0 || l.Use())
}

// keepOpen keeps a link that is in use open for a client until stopKeepingOpen, unless its server
// is replaced.
func (l *link) keepOpen() {
	l.gateway.links.mu.Lock()
	defer l.gateway.links.mu.Unlock()
	l.keeps++
}

// stopKeepingOpen undoes keepOpen.
func (l *link) stopKeepingOpen() {
	l.gateway.links.mu.Lock()
	defer l.gateway.links.mu.Unlock()
	if l.keeps--; l.uses+l.keeps == 0 {
		l.Release()
	}
}

// release ends the use of one request.
func (l *link) release() {
	t := l.gateway.links
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.uses--; l.uses > 0 || !l.isSettled() || l.err != nil {
		return
	}
	switch {
	case l.isOutlived():
		t.dropLink(l)
	case l.keeps == 0:
		l.Release()
	}
}

// isOutlived reports whether the link's server was replaced, or its session or its account has ended. The caller
// has the table's lock.
func (l *link) isOutlived() bool {
	return l.live.Err() != nil || l.server.retired.Load() || l.session != nil && l.session.linksClosed
}

var errLinksClosed = &upstream.LinkError{Code: upstream.CodeClosed, Reason: "the session has ended"}

// hasEnded reports whether the link is over.
func (l *link) hasEnded() bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}
