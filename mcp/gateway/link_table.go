package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"pgfsm/mcp/upstream"
)

// A linkKey is the client, the server and the capabilities of a link.
type linkKey struct {
	client       Identity
	server       *server
	capabilities string // of the client, as the server knows them
	dedicated    int    // number of a link that one request at a time uses; zero: the link is shared
}

// anyDedicated is the number of whichever dedicated link is free.
const anyDedicated = -1

// A linkSlot is the place of a link in a table.
type linkSlot struct {
	table *linkTable
	key   linkKey
	ready chan struct{} // closed when link or err is set
	link  *link
	err   error
	since time.Time // of the failure or the last use
	uses  int
	timer *time.Timer
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

// works reports whether the link of a slot can be used. The caller has the table's lock.
func (s *linkSlot) works() bool { return s.settled() && s.err == nil && !s.link.ended() }

// A linkTable makes each link when it is first needed, and again after it has ended.
type linkTable struct {
	ctx    context.Context // its end ends all connecting
	cancel context.CancelFunc
	max    int           // of links
	idle   time.Duration // after which an unused link is closed; zero: it stays until the table is closed

	mu     sync.Mutex
	slots  map[linkKey]*linkSlot
	closed bool
}

func (t *linkTable) init(ctx context.Context, most int, idle time.Duration) {
	t.ctx, t.cancel = context.WithCancel(ctx)
	t.max, t.idle, t.slots = most, idle, make(map[linkKey]*linkSlot)
}

// get returns the link of a key, and connects if there is none. Concurrent callers wait for the same attempt, which goes on when one of them
// gives up. The link of a key with the number anyDedicated has no other user; the error is errTooManyLinks if there is none.
func (t *linkTable) get(ctx context.Context, key linkKey, connect func(context.Context) (*link, error)) (*link, error) {
	s, err := t.take(key, connect)
	if err != nil {
		return nil, err
	}
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
	return s.link, nil
}

// take returns the slot of a key and counts a user.
func (t *linkTable) take(key linkKey, connect func(context.Context) (*link, error)) (*linkSlot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errLinksClosed
	}
	if key.dedicated == anyDedicated {
		if key.dedicated = t.unused(key); key.dedicated == 0 {
			return nil, errTooManyLinks
		}
	}
	s := t.slots[key]
	if s != nil && s.settled() && (s.err != nil && time.Since(s.since) >= downFor || s.err == nil && s.link.ended()) {
		t.drop(s)
		s = nil
	}
	if s == nil {
		if len(t.slots) >= t.max && !t.evict() {
			return nil, errTooManyLinks
		}
		s = &linkSlot{table: t, key: key, ready: make(chan struct{})}
		t.slots[key] = s
		go t.connect(s, connect)
	}
	if s.uses++; s.timer != nil {
		s.timer.Stop()
	}
	return s, nil
}

// connect fills a slot.
func (t *linkTable) connect(s *linkSlot, connect func(context.Context) (*link, error)) {
	l, err := connect(t.ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && t.slots[s.key] != s { // it was dropped meanwhile
		go l.Close()
		err = errLinksClosed
	}
	s.link, s.err, s.since = l, err, time.Now()
	if err == nil {
		l.slot = s
	}
	close(s.ready)
}

// release ends a use.
func (t *linkTable) release(s *linkSlot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.uses--; s.uses > 0 {
		return
	}
	if s.key.server.retired.Load() {
		t.drop(s)
		return
	}
	if t.idle == 0 {
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

// retire closes the unused links with a server that was replaced. The others are closed when they are released.
func (t *linkTable) retire(server *server) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, s := range t.slots { // in any order: each is independent
		if key.server == server && s.uses == 0 {
			t.drop(s)
		}
	}
}

// expire closes an unused link.
func (t *linkTable) expire(s *linkSlot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.uses == 0 {
		t.drop(s)
	}
}

// drop removes a slot and closes its link. The caller has the lock.
func (t *linkTable) drop(s *linkSlot) {
	if t.slots[s.key] == s {
		delete(t.slots, s.key)
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.settled() && s.err == nil {
		if s.link.session != nil {
			s.link.session.requests.Drop(s.link)
		}
		go s.link.Close()
	}
}

// evict closes the link that was unused for longest. It reports whether there was one.
func (t *linkTable) evict() bool {
	var oldest *linkSlot
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

// working are the links that work, in the order of the servers.
func (t *linkTable) working(servers []*server) (out []*link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, server := range servers {
		for _, s := range t.slots { // in any order: a session has one link with each server
			if s.key.server == server && s.works() {
				out = append(out, s.link)
			}
		}
	}
	return out
}

// close closes all links and makes no others.
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

// errTooManyLinks is the error if all links are in use.
var errTooManyLinks = errors.New("too many links are in use")
