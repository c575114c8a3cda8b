package gateway

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"
)

// evictAfter is how long nobody may have used a session before a new one of the same client takes its place.
const evictAfter = time.Minute

// A session is one client's, of the revisions that have sessions, from initialize until the client or its connection ends
// it, or nobody has used it for long. It belongs to the identity and the endpoint that it was opened at.
type session struct {
	id         string // random; for HTTP what the client says to go on
	from       Identity
	at         *endpoint
	protocol   string
	ctx        context.Context // ends with the session
	dispatched                 // what the dispatcher keeps

	cancel   context.CancelFunc
	table    *sessions
	piped    atomic.Bool  // the client has a pipe and comes back over no other way
	used     atomic.Int64 // when a request last came or was answered, in nanoseconds of Unix time
	requests underway
	trails   trails   // what was said on streams that can be taken up again
	outside  standing // what belongs to no request
	timer    *time.Timer
}

// enter notes a request under way. The error is errBusy or errTwice.
func (s *session) enter(id string) error {
	s.touch()
	return s.requests.enter(id, s.table.gateway.options.Limits.RequestsPerSession, nil)
}

// leave notes that a request was answered.
func (s *session) leave(id string) {
	s.touch()
	s.requests.leave(id)
}

func (s *session) touch() { s.used.Store(time.Now().UnixNano()) }

// idle is for how long nobody has used the session; zero while somebody does.
func (s *session) idle() time.Duration {
	if s.requests.count() > 0 || s.outside.attached() {
		return 0
	}
	return max(0, time.Since(time.Unix(0, s.used.Load())))
}

// expire ends the session if its time is over, and looks again when it may be.
func (s *session) expire() {
	limit := s.table.gateway.options.Limits.SessionIdle
	if idle := s.idle(); idle < limit {
		s.table.mu.Lock()
		defer s.table.mu.Unlock()
		if s.table.byID[s.id] == s {
			s.timer.Reset(limit - idle)
		}
		return
	}
	s.end()
}

// push says something to the client that belongs to none of its requests. It does not block. While nobody listens the oldest
// that was not heard gives way; a client who listens and does not read loses its session.
func (s *session) push(message []byte) {
	if s.ctx.Err() == nil && !s.outside.put(message) {
		s.end()
	}
}

// end ends the session. What is under way for it is cancelled.
func (s *session) end() {
	s.table.remove(s)
	s.timer.Stop()
	s.cancel()
	s.trails.end()
	s.outside.end()
}

// sessions are all sessions that are open.
type sessions struct {
	gateway *Gateway
	mu      sync.Mutex
	byID    map[string]*session
	per     map[Identity]int
}

func newSessions(g *Gateway) *sessions {
	return &sessions{gateway: g, byID: make(map[string]*session), per: make(map[Identity]int)}
}

// open opens a session. The error is errBusy or errDraining.
func (t *sessions) open(id Identity, at *endpoint, protocol string) (*session, error) {
	if t.gateway.busy.closed() {
		return nil, errDraining
	}
	s := &session{id: rand.Text(), from: id, at: at, protocol: protocol, table: t}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.trails.init()
	s.trails.share = share{of: &t.gateway.kept, from: id}
	s.outside.share = share{of: &t.gateway.unread, from: id}
	s.touch()
	old, err := t.add(s)
	if old != nil {
		old.end()
	}
	if err != nil {
		s.cancel()
		return nil, err
	}
	if t.gateway.busy.closed() { // and endAll may have missed it
		s.end()
		return nil, errDraining
	}
	return s, nil
}

// add makes the session known, or says that there are too many. The session that it returns has given its place and must be ended.
func (t *sessions) add(s *session) (old *session, err error) {
	limits := t.gateway.options.Limits
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.byID) >= limits.Sessions || t.per[s.from] >= limits.SessionsPerIdentity {
		if old = t.longest(s.from); old == nil {
			return nil, errBusy
		}
		t.forget(old)
	}
	t.byID[s.id] = s
	t.per[s.from]++
	s.timer = time.AfterFunc(limits.SessionIdle, s.expire)
	return old, nil
}

// longest finds the session of an identity that nobody has used for longest, if that is long.
func (t *sessions) longest(id Identity) (found *session) {
	most := evictAfter
	for _, s := range t.byID { // in any order: of two that were left at the same moment either may go
		if s.from != id {
			continue
		}
		if idle := s.idle(); idle >= most {
			found, most = s, idle
		}
	}
	return found
}

// find returns the session with an id, if it is this identity's at this endpoint and not that of a pipe. Another's is as
// unknown as none.
func (t *sessions) find(id string, who Identity, at *endpoint) *session {
	t.mu.Lock()
	s := t.byID[id]
	t.mu.Unlock()
	if s == nil || s.from != who || s.at != at || s.piped.Load() || s.ctx.Err() != nil {
		return nil
	}
	return s
}

func (t *sessions) remove(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(s)
}

// forget is remove for one who holds the lock.
func (t *sessions) forget(s *session) {
	if t.byID[s.id] != s {
		return
	}
	delete(t.byID, s.id)
	if t.per[s.from]--; t.per[s.from] == 0 {
		delete(t.per, s.from)
	}
}

func (t *sessions) endAll() {
	t.mu.Lock()
	all := make([]*session, 0, len(t.byID))
	for _, s := range t.byID { // in any order: all are ended
		all = append(all, s)
	}
	t.mu.Unlock()
	for _, s := range all {
		s.end()
	}
}

// count is how many sessions are open.
func (t *sessions) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}
