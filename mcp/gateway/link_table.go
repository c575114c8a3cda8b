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

// get returns the link of a key, and connects if there is none. Concurrent callers
// wait for the same attempt, which continues when one of them gives up.
func (t *linkTable) get(ctx context.Context, key linkKey) (*link, error) {
	l, err := t.use(key)
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

// use returns the link of a key, which may still be connecting, and counts a user.
func (t *linkTable) use(key linkKey) (*link, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.links[key]
	if l != nil && l.settled() && !l.reusable() {
		if l.uses > 0 {
			delete(t.links, key) // the link ends with the requests that are under way
		} else {
			t.drop(l)
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
		t.drop(l)
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
		t.drop(l)
	}()
}

// drop removes a link and closes it. The caller has the lock.
func (t *linkTable) drop(l *link) {
	if t.links[l.key] == l {
		delete(t.links, l.key)
	}
	if l.settled() && l.err == nil {
		if l.session != nil {
			l.session.questions.drop(l)
		}
		go l.Close()
	}
}

// retire closes the unused links with a replaced server. The others are closed when they are
// released.
func (t *linkTable) retire(server *server) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, l := range t.links { // in any order: each is independent
		if key.server == server && l.uses == 0 {
			t.drop(l)
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
			t.drop(l)
		}
	}
}

// close closes all links. The table opens no others.
func (t *linkTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.cancel()
	for _, l := range t.links { // in any order: all are closed
		t.drop(l)
	}
}

// working returns the working links that belong to a session, in the order of the servers.
func (t *linkTable) working(session *clientSession, servers []*server) (links []*link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, server := range servers {
		for key, l := range t.links { // in any order: a session has one link with each server
			if key.session == session && key.server == server && l.works() {
				links = append(links, l)
			}
		}
	}
	return links
}

// await waits until the table has a working link for the key. It does not connect.
func (t *linkTable) await(ctx context.Context, key linkKey) {
	for {
		t.mu.Lock()
		l, opened := t.links[key], t.opened
		found := t.closed || l != nil && l.works()
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

// settled reports whether connecting is over.
func (l *link) settled() bool {
	select {
	case <-l.ready:
		return true
	default:
		return false
	}
}

// works reports whether the link is usable.
func (l *link) works() bool { return l.settled() && !l.ended() }

// reusable reports whether a settled link can serve another user, and starts a use of it.
func (l *link) reusable() bool { return !l.Retired() && (l.uses+l.keeps > 0 || l.Use()) }

// keep keeps a link that is in use open for a client until unkeep, unless its server is replaced.
func (l *link) keep() {
	l.gateway.links.mu.Lock()
	defer l.gateway.links.mu.Unlock()
	l.keeps++
}

// unkeep undoes keep.
func (l *link) unkeep() {
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
	if l.uses--; l.uses > 0 || !l.settled() || l.err != nil {
		return
	}
	switch {
	case l.server.retired.Load() || l.session != nil && l.session.linksClosed:
		t.drop(l)
	case l.keeps == 0:
		l.Release()
	}
}

var errLinksClosed = &upstream.LinkError{Code: upstream.CodeClosed, Reason: "the session has ended"}
