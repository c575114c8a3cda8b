package gateway

import (
	"context"
	"sync"
	"time"

	"pgfsm/mcp/upstream"
)

// A linkKey identifies the clients that share a link.
type linkKey struct {
	client       Identity // zero: shared by all clients, or by those of one session
	server       *server
	protocol     string // revision of the clients
	capabilities string // capabilities of the clients, as the server knows them
}

// A linkSlot holds one link of a table.
type linkSlot struct {
	table *linkTable
	key   linkKey
	ready chan struct{} // closed when link or err is set
	link  *link
	err   error
	since time.Time // time of the failure
	uses  int       // number of uses by requests
	keeps int       // number of uses by clients; while one of both is positive, the slot has one use of the link
}

// settled reports whether connecting is over.
func (s *linkSlot) settled() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// works reports whether a slot has a usable link. The caller has the table's lock.
func (s *linkSlot) works() bool { return s.settled() && s.err == nil && !s.link.ended() }

// reusable reports whether a settled slot can serve another user. Either its link works, and reusable starts a use, or the server was
// down a moment ago. A refusal for too many sessions is not reused, because room may come at any time.
func (s *linkSlot) reusable() bool {
	if s.err != nil {
		return !tooManyLinks(s.err) && time.Since(s.since) < downFor
	}
	return !s.link.Retired() && (s.uses+s.keeps > 0 || s.link.Use())
}

// A linkTable opens each link when it is first needed, and again after it has
// ended. Package upstream bounds the links, and closes unused ones.
type linkTable struct {
	ctx    context.Context // its end stops all connecting
	cancel context.CancelFunc

	mu     sync.Mutex
	slots  map[linkKey]*linkSlot
	opened chan struct{} // closed and replaced when a link is opened
	closed bool
}

func (t *linkTable) init(ctx context.Context) {
	t.ctx, t.cancel = context.WithCancel(ctx)
	t.slots, t.opened = make(map[linkKey]*linkSlot), make(chan struct{})
}

// get returns the link of a key, and connects if there is none. Concurrent callers
// wait for the same attempt, which continues when one of them gives up.
func (t *linkTable) get(ctx context.Context, key linkKey, connect func(context.Context) (*link, error)) (*link, error) {
	s, err := t.use(key, connect)
	if err != nil {
		return nil, err
	}

	select {
	case <-s.ready:
	case <-ctx.Done():
		s.release()
		return nil, context.Cause(ctx)
	}
	if s.err != nil {
		s.release()
		return nil, s.err
	}
	return s.link, nil
}

// use returns the slot of a key and counts a user.
func (t *linkTable) use(key linkKey, connect func(context.Context) (*link, error)) (*linkSlot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errLinksClosed
	}

	s := t.slots[key]
	if s != nil && s.settled() && !s.reusable() {
		if s.uses > 0 && s.err == nil {
			delete(t.slots, key) // the link ends with the requests that are under way
		} else {
			t.drop(s)
		}
		s = nil
	}

	if s == nil {
		s = &linkSlot{table: t, key: key, ready: make(chan struct{})}
		t.slots[key] = s
		go t.connect(s, connect)
	}
	s.uses++
	return s, nil
}

// connect opens the link of a slot.
func (t *linkTable) connect(s *linkSlot, connect func(context.Context) (*link, error)) {
	l, err := connect(t.ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	defer close(s.ready)

	if err == nil && t.slots[s.key] != s { // dropped meanwhile
		go l.Close()
		err = errLinksClosed
	}
	s.link, s.err, s.since = l, err, time.Now()
	if err != nil {
		if s.uses == 0 { // all callers have given up
			s.expireLater()
		}
		return
	}

	l.slot = s
	if s.uses == 0 {
		l.Release()
	}
	close(t.opened)
	t.opened = make(chan struct{})
	go func() {
		<-l.Done()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.drop(s)
	}()
}

// keep keeps a link that is in use open for a client until unkeep, unless its server is replaced.
func (s *linkSlot) keep() {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.keeps++
}

// unkeep undoes keep.
func (s *linkSlot) unkeep() {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	if s.keeps--; s.uses+s.keeps == 0 && s.link != nil {
		s.link.Release()
	}
}

// release ends the use of one request.
func (s *linkSlot) release() {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	if s.uses--; s.uses > 0 || !s.settled() {
		return
	}
	switch {
	case s.key.server.retired.Load():
		s.table.drop(s)
	case s.keeps > 0:
	case s.link != nil:
		s.link.Release()
	default:
		s.expireLater()
	}
}

// expireLater forgets, after a while, the failure of a slot without uses.
func (s *linkSlot) expireLater() {
	time.AfterFunc(downFor, func() {
		s.table.mu.Lock()
		defer s.table.mu.Unlock()
		if s.uses == 0 {
			s.table.drop(s)
		}
	})
}

// retire closes the unused links with a replaced server. The others are closed when they are released.
func (t *linkTable) retire(server *server) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, s := range t.slots { // in any order: each is independent
		if key.server == server && s.uses == 0 {
			t.drop(s)
		}
	}
}

// drop removes a slot and closes its link. The caller has the lock.
func (t *linkTable) drop(s *linkSlot) {
	if t.slots[s.key] == s {
		delete(t.slots, s.key)
	}
	if s.settled() && s.err == nil {
		if s.link.session != nil {
			s.link.session.requests.Drop(s.link)
		}
		go s.link.Close()
	}
}

// working returns the links that work, in the order of the servers.
func (t *linkTable) working(servers []*server) (links []*link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, server := range servers {
		for _, s := range t.slots { // in any order: a session has one link with each server
			if s.key.server == server && s.works() {
				links = append(links, s.link)
			}
		}
	}
	return links
}

// await waits until the table has a working link for the key. It does not connect.
func (t *linkTable) await(ctx context.Context, key linkKey) {
	for {
		t.mu.Lock()
		s, opened := t.slots[key], t.opened
		found := t.closed || s != nil && s.works()
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

// close closes all links. The table opens no others.
func (t *linkTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.cancel()
	for _, s := range t.slots { // in any order: all are closed
		t.drop(s)
	}
}

var errLinksClosed = &upstream.LinkError{Code: upstream.CodeClosed, Reason: "the session has ended"}
