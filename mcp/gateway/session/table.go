package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"
)

// Limits bound the resources that clients may hold. Zero means the default; nothing is unlimited.
type Limits struct {
	BodyBytes           int           // bytes of one message from a client
	Sessions            int           // open at once
	SessionsPerIdentity int           // sessions of one client
	SessionIdle         time.Duration // time after which an unused session ends
	Requests            int           // under way at once
	RequestsPerIdentity int           // requests of one client
	RequestsPerSession  int           // requests of one session
	// Bytes of memory for large messages, see [Budget]; one client gets half.
	MemoryBytes int
	Connections int // connections to the HTTP listener
}

// withDefaults returns the limits with a default in place of each zero.
func (l Limits) withDefaults() Limits {
	return Limits{
		BodyBytes:           cmp.Or(l.BodyBytes, 4<<20),
		Sessions:            cmp.Or(l.Sessions, 1000),
		SessionsPerIdentity: cmp.Or(l.SessionsPerIdentity, 256),
		SessionIdle:         cmp.Or(l.SessionIdle, 30*time.Minute),
		Requests:            cmp.Or(l.Requests, 1024),
		RequestsPerIdentity: cmp.Or(l.RequestsPerIdentity, 512),
		RequestsPerSession:  cmp.Or(l.RequestsPerSession, 64),
		MemoryBytes:         cmp.Or(l.MemoryBytes, 512<<20),
		Connections:         cmp.Or(l.Connections, 4096),
	}
}

// A Table holds all open sessions, and counts the resources that all clients hold together.
type Table struct {
	Limits   Limits
	Requests *Admission // requests under way
	Streams  *Admission // open streams of revision 2024-11-05, with the limits of sessions
	Memory   *Budget

	mu       sync.Mutex
	byID     map[string]*Session
	sessions quota
}

// NewTable returns an empty table.
func NewTable(limits Limits) *Table {
	l := limits.withDefaults()
	return &Table{
		Limits:   l,
		Requests: newAdmission(l.Requests, l.RequestsPerIdentity),
		Streams:  newAdmission(l.Sessions, l.SessionsPerIdentity),
		Memory:   NewBudget(l.MemoryBytes),
		byID:     make(map[string]*Session),
		sessions: newQuota(l.Sessions, l.SessionsPerIdentity),
	}
}

// Open opens a session. The error is [ErrBusy] or [ErrStopping].
func (t *Table) Open(client Identity, endpoint, protocol string) (*Session, error) {
	if t.Requests.Stopped() {
		return nil, ErrStopping
	}

	s := &Session{ID: rand.Text(), Name: rand.Text(), Client: client, Endpoint: endpoint, Protocol: protocol, table: t}

	s.Context, s.cancel = context.WithCancel(context.Background())
	s.Answers.init(client, t.Memory)
	s.outgoing.init(client, t.Memory)
	s.Touch()

	// End takes the lock of the table, so the replaced session ends outside of it.
	replaced, err := t.register(s)
	if replaced != nil {
		replaced.End()
	}

	if err != nil {
		s.cancel()
		return nil, err
	}

	if t.Requests.Stopped() { // EndAll may have missed this session
		s.End()
		return nil, ErrStopping
	}

	return s, nil
}

// register registers a session. If there are too many, it replaces the client's
// longest unused session. The caller must end the replaced session.
func (t *Table) register(s *Session) (replaced *Session, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.sessions.fits(s.Client, 1) {
		if replaced = t.longestUnused(s.Client); replaced == nil {
			return nil, ErrBusy
		}
		t.unregister(replaced)
	}

	t.byID[s.ID] = s
	t.sessions.add(s.Client, 1)
	s.timer = time.AfterFunc(t.Limits.SessionIdle, s.endIfIdle)
	return replaced, nil
}

// longestUnused returns the client's session that was unused for longest, and at least for
// evictAfter; nil if there is none.
func (t *Table) longestUnused(client Identity) (found *Session) {
	longest := evictAfter
	for _, s := range t.byID { // in any order: of two sessions left at the same moment either may go
		if s.Client != client {
			continue
		}
		if idle := s.idleTime(); idle >= longest {
			found, longest = s, idle
		}
	}
	return found
}

// Find returns the session with this id if this client opened it at this endpoint; else nil.
func (t *Table) Find(id string, client Identity, endpoint string) *Session {
	t.mu.Lock()
	s := t.byID[id]
	t.mu.Unlock()
	if s == nil || s.Client != client || s.Endpoint != endpoint || s.Context.Err() != nil {
		return nil
	}
	return s
}

func (t *Table) remove(s *Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unregister(s)
}

// unregister removes a session, unless it is removed already. The caller has the lock.
func (t *Table) unregister(s *Session) {
	if t.byID[s.ID] == s {
		delete(t.byID, s.ID)
		t.sessions.add(s.Client, -1)
	}
}

// EndAll ends all sessions.
func (t *Table) EndAll() {
	t.mu.Lock()
	sessions := slices.Collect(maps.Values(t.byID)) // in any order: all are ended
	t.mu.Unlock()
	for _, s := range sessions {
		s.End()
	}
}

// Count returns the number of open sessions.
func (t *Table) Count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}
