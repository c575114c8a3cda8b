package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/traces/ledger"
)

// An Op is a place at which a [Memory] can fail.
type Op string

// The places. A write is known by its method.
const (
	Begin       Op = "begin"  // of an Update, before its function is called
	Commit      Op = "commit" // before anything is durable
	Committed   Op = "committed"
	AddEntry    Op = "AddEntry"
	AddRequest  Op = "AddRequest"
	PutRequest  Op = "PutRequest"
	PutBlob     Op = "PutBlob"
	PutToken    Op = "PutToken"
	DropToken   Op = "DropToken"
	PutBlock    Op = "PutBlock"
	DropBlock   Op = "DropBlock"
	PutDelivery Op = "PutDelivery"
	Delivered   Op = "SetDelivered"
	Prune       Op = "Prune"
	PutSession  Op = "PutSession"
	DropSession Op = "DropSession"
)

var (
	errOver   = errors.New("the transaction is over")
	errClosed = errors.New("the store is closed")
)

// Memory is a store in memory, for tests of what is built on stores. Each of its handles stands for a process.
//
// An Update works on a copy of all that was there, which takes its place at the commit: what is undone was never there.
type Memory struct {
	// Fail is called at each place, with how often this handle was there, from 1. The error it returns is that of the
	// operation. At Committed the rows are durable already: an error stands for a process that ended before it received of it.
	// Set it before the handle is used.
	Fail func(op Op, n int) error

	shared *memory
	times  map[Op]int // guarded by shared.writing
	closed atomic.Bool
}

// memory is what the handles share.
type memory struct {
	writing chan struct{}
	state   atomic.Pointer[state]
	mu      sync.Mutex // guards owned
	owned   map[string]*Memory
}

type deliveryKey struct {
	entry int64
	hook  string
}

var _ ledger.Store = (*Memory)(nil)

// A state is never changed once it is committed. Lists only grow at their end, where no older state looks.
type state struct {
	entries    []ledger.Entry
	hashes     map[int64]tlog.Hash
	requests   map[string]ledger.Request
	blobs      map[canonical.Digest]ledger.Blob
	tokens     map[string]ledger.Token
	blocks     map[string]ledger.Block
	deliveries map[deliveryKey]ledger.Delivery
	delivered  map[string]int64
	sessions   map[canonical.Digest]ledger.Session
}

func (s *state) copy() *state {
	return &state{
		s.entries, maps.Clone(s.hashes), maps.Clone(s.requests), maps.Clone(s.blobs), maps.Clone(s.tokens), maps.Clone(s.blocks),
		maps.Clone(s.deliveries), maps.Clone(s.delivered), maps.Clone(s.sessions),
	}
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	m := &memory{writing: make(chan struct{}, 1), owned: make(map[string]*Memory)}
	m.state.Store(&state{
		hashes: make(map[int64]tlog.Hash), requests: make(map[string]ledger.Request), blobs: make(map[canonical.Digest]ledger.Blob),
		tokens: make(map[string]ledger.Token), blocks: make(map[string]ledger.Block),
		deliveries: make(map[deliveryKey]ledger.Delivery), delivered: make(map[string]int64),
		sessions: make(map[canonical.Digest]ledger.Session),
	})
	return m.handle()
}

func (m *memory) handle() *Memory {
	return &Memory{shared: m, times: make(map[Op]int)}
}

// Open returns another handle of the same rows, as another process has it. It does not fail by itself.
func (m *Memory) Open() *Memory { return m.shared.handle() }

// Copy returns a store of its own with the same rows, like a copy of a file.
func (m *Memory) Copy() *Memory {
	other := NewMemory()
	other.shared.state.Store(m.shared.state.Load())
	return other
}

// Update is [ledger.Store.Update].
func (m *Memory) Update(ctx context.Context, do func(ledger.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case m.shared.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-m.shared.writing }()
	if m.closed.Load() {
		return errClosed
	}
	if err := m.at(Begin); err != nil {
		return err
	}
	s := m.shared.state.Load().copy()
	t := &tx{reader: reader{ctx: ctx, now: func() *state { return s }}, state: s, m: m}
	defer func() { t.over = true }()
	if err := do(t); err != nil {
		return err
	}
	if err := t.usable(); err != nil {
		return err
	}
	if err := m.at(Commit); err != nil {
		return err
	}
	m.shared.state.Store(t.state)
	return m.at(Committed)
}

// at counts a place, and fails there if the test wants it.
func (m *Memory) at(op Op) error {
	m.times[op]++
	if m.Fail == nil {
		return nil
	}
	return m.Fail(op, m.times[op])
}

// View is [ledger.Store.View].
func (m *Memory) View(ctx context.Context, do func(ledger.Reader) error) error {
	now := m.shared.state.Load()
	return m.look(ctx, func() *state { return now }, do)
}

// Glance is [ledger.Store.Glance].
func (m *Memory) Glance(ctx context.Context, do func(ledger.Reader) error) error {
	return m.look(ctx, m.shared.state.Load, do)
}

func (m *Memory) look(ctx context.Context, now func() *state, do func(ledger.Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.closed.Load() {
		return errClosed
	}
	v := &reader{ctx: ctx, now: now}
	defer func() { v.over = true }()
	return do(v)
}

// Now is [ledger.Store.Now].
func (m *Memory) Now() time.Time { return time.Now() }

// Own is [ledger.Store.Own].
func (m *Memory) Own(_ context.Context, owner string) (release func() error, err error) {
	if err := ownerID(owner); err != nil {
		return nil, err
	}
	m.shared.mu.Lock()
	defer m.shared.mu.Unlock()
	if m.shared.owned[owner] != nil {
		return nil, fmt.Errorf("owner %s is another process", owner)
	}
	m.shared.owned[owner] = m
	return sync.OnceValue(func() error {
		m.shared.mu.Lock()
		defer m.shared.mu.Unlock()
		delete(m.shared.owned, owner)
		return nil
	}), nil
}

// Gone is [ledger.Store.Gone].
func (m *Memory) Gone(_ context.Context, owner string) (bool, error) {
	if err := ownerID(owner); err != nil {
		return false, err
	}
	m.shared.mu.Lock()
	defer m.shared.mu.Unlock()
	return m.shared.owned[owner] == nil, nil
}

func ownerID(owner string) error {
	if id, err := uuid.Parse(owner); err != nil || id.String() != owner {
		return fmt.Errorf("%q is not the id of an owner: want a UUID", owner)
	}
	return nil
}

// Close is [ledger.Store.Close]. The rows stay for other handles.
func (m *Memory) Close() error {
	m.shared.writing <- struct{}{}
	defer func() { <-m.shared.writing }()
	m.closed.Store(true)
	return nil
}

// Crash is what is left of a handle when its process is killed: it can do nothing more, and its owners are gone.
func (m *Memory) Crash() {
	m.closed.Store(true)
	m.shared.mu.Lock()
	defer m.shared.mu.Unlock()
	maps.DeleteFunc(m.shared.owned, func(_ string, by *Memory) bool { return by == m })
}

// cloneEntry keeps the bytes of a row from those who have it.
func cloneEntry(e ledger.Entry) ledger.Entry {
	e.Events = slices.Clone(e.Events)
	return e
}

func cloneSession(s ledger.Session) ledger.Session {
	s.Identity = s.Identity.Clone()
	return s
}

func cloneRequest(r ledger.Request) ledger.Request {
	r.Approvers = slices.Clone(r.Approvers)
	return r
}
