package gateway

import (
	"context"
	"sync"

	"pgfsm/mcp/upstream"
)

// A linkTable opens each link when it is first needed, and again after it has ended or could not be
// opened. Package upstream bounds the links, and closes unused ones.
type linkTable struct {
	gateway *Gateway
	ctx     context.Context // its end stops all connecting
	cancel  context.CancelFunc

	mu     sync.Mutex
	links  map[linkKey]*link
	opened chan struct{} // closed and replaced when a link is opened
	closed bool
}

func newLinkTable(g *Gateway) *linkTable {
	t := &linkTable{gateway: g, links: make(map[linkKey]*link), opened: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// connectedLink returns the link of a key, and connects if there is none. Concurrent callers
// wait for the same attempt, which continues when one of them gives up.
func (t *linkTable) connectedLink(ctx context.Context, key linkKey) (*link, error) {
	l, err := t.acquireLink(key)
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
func (t *linkTable) acquireLink(key linkKey) (*link, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
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
		}
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

	opened, err := l.open(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	defer close(l.ready)

	if err == nil && t.links[l.key] != l { // dropped meanwhile
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

// dropLink removes a link and closes it. The caller has the lock.
func (t *linkTable) dropLink(l *link) {
	if t.links[l.key] == l {
		delete(t.links, l.key)
	}
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
func (l *link) startReuse() bool { return !l.Retired() && (l.uses+l.keeps > 0 || l.Use()) }

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
	case l.server.retired.Load() || l.session != nil && l.session.linksClosed:
		t.dropLink(l)
	case l.keeps == 0:
		l.Release()
	}
}

var errLinksClosed = &upstream.LinkError{Code: upstream.CodeClosed, Reason: "the session has ended"}
