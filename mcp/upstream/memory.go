package upstream

import (
	"context"
	"io"
	"sync"

	"pgfsm/internal/deadline"
)

// maxMemory bounds the memory of large messages of servers.
const maxMemory = 512 << 20

// memoryPerByte is the memory that one byte of a result takes until it is recorded.
// TestMemoryOfLargeMessages in e2e/bench measures it.
const memoryPerByte = 8

// memoryStep is the unit, in bytes of a message, in which memory is reserved. Messages of up to one
// step reserve nothing.
const memoryStep = 64 << 10

// A memoryBudget bounds the memory of large messages of servers: of all together, and for one owner
// half of that. Beyond a bound the readers wait, and so do the servers. One message at a time may
// exceed the bounds: otherwise readers that each hold a part would wait for each other.
type memoryBudget struct {
	mu       sync.Mutex
	total    int // bound of all owners together
	perOwner int
	taken    int
	byOwner  map[string]int
	exceeds  *Memory       // the message that may exceed the bounds
	freed    chan struct{} // closed, and replaced, when memory is given back
}

func newMemoryBudget(total int) *memoryBudget {
	return &memoryBudget{
		total:    total,
		perOwner: (total + 1) / 2,
		byOwner:  make(map[string]int),
		freed:    make(chan struct{}),
	}
}

// Memory holds what the messages for one request take from the budget. Nil reserves nothing.
type Memory struct {
	budget *memoryBudget
	owner  string
	size   int
	closed bool
}

// Memory returns a reservation for the answer to a call, which lasts until Release.
// Set it as the Memory of the call. The owner is the link's: see [Peer].
func (u *Upstreams) Memory(owner string) *Memory {
	if u == nil {
		return nil
	}
	return &Memory{budget: u.memory, owner: owner}
}

// Release gives all memory back, for good.
func (m *Memory) Release() {
	if m == nil {
		return
	}
	m.budget.mu.Lock()
	defer m.budget.mu.Unlock()
	m.giveBack(m.size)
	m.closed = true
}

// giveBack gives back a part of the memory. The caller holds the lock.
func (m *Memory) giveBack(size int) {
	b := m.budget
	if b.exceeds == m {
		b.exceeds = nil
	} else if size == 0 {
		return
	}
	m.size -= size
	b.taken -= size
	if b.byOwner[m.owner] -= size; b.byOwner[m.owner] == 0 {
		delete(b.byOwner, m.owner)
	}
	close(b.freed)
	b.freed = make(chan struct{})
}

// reserve reserves more memory if there is room. The caller holds the lock.
func (m *Memory) reserve(size int) bool {
	b := m.budget
	if m.closed {
		return true
	}
	if b.taken+size > b.total || b.byOwner[m.owner]+size > b.perOwner {
		if b.exceeds != nil && b.exceeds != m {
			return false
		}
		b.exceeds = m
	}
	m.size += size
	b.taken += size
	b.byOwner[m.owner] += size
	return true
}

// awaitRoom reserves the memory for a message of which size bytes have arrived, in place of the
// previous reservation. It waits until there is room or ctx ends. While it waits, pause stops the
// clocks of the requests that wait for the message.
func (m *Memory) awaitRoom(ctx context.Context, size int, pause func() (resume func())) error {
	if m == nil {
		return nil
	}

	b, need := m.budget, memoryPerByte*((size-1)/memoryStep)*memoryStep
	b.mu.Lock()
	defer b.mu.Unlock()
	if size == 0 {
		m.giveBack(m.size)
		return nil
	}

	// The lock is not held while the message waits. Each release wakes all messages that wait.
	for paused := false; need > m.size && !m.reserve(need-m.size); {
		freed := b.freed
		b.mu.Unlock()
		if !paused {
			defer pause()()
			paused = true
		}
		select {
		case <-freed:
		case <-ctx.Done():
		}
		b.mu.Lock()
		if err := ctx.Err(); err != nil {
			return err
		}
	}

	return nil
}

// adopt takes over the reservation of other.
func (m *Memory) adopt(other *Memory) {
	if m == nil || other == nil {
		return
	}
	b := m.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	size := other.size
	if m.closed || size == 0 { // the message is small, or no request waits for it any more
		return
	}
	if b.byOwner[other.owner] -= size; b.byOwner[other.owner] == 0 {
		delete(b.byOwner, other.owner)
	}
	b.byOwner[m.owner] += size
	m.size, other.size = m.size+size, 0
	if b.exceeds == other {
		b.exceeds = m
	}
}

// A holder reserves the memory for a message of which size bytes have arrived. 0 begins a new
// message. complete says that the message is whole, and keeps its memory.
type holder func(size int) error

const complete = -1

// heldReader reserves memory for the bytes that it reads.
type heldReader struct {
	io.Reader
	hold holder
	size int
}

func (r *heldReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.size += n
	if err := r.hold(r.size); err != nil {
		return n, err
	}
	return n, err
}

// answerHolder returns a holder for the answer to the request.
func (q *query) answerHolder(ctx context.Context) holder {
	return func(size int) error {
		return q.memory.awaitRoom(ctx, size, func() (resume func()) {
			if q.clock == nil {
				return pauseNone()
			}
			q.clock.Pause()
			return q.clock.Resume
		})
	}
}

// timedHolder returns a holder for a message that no request limits in time. Apart from waits for
// memory, the message must be complete within the server's Timeout, or the link ends: a server
// that sends only the beginning would keep the memory from all others. The caller ends with 0.
func (l *Link) timedHolder(ctx context.Context, m *Memory, pause func() (resume func())) holder {
	var timed context.Context
	stop := func() {}
	return func(size int) error {
		switch {
		case size <= memoryStep: // small, or complete
			stop()
			timed, stop = nil, func() {}
		case timed == nil:
			limitCtx, end := deadline.Within(l.ctx, l.up.server.Timeout)
			keep := context.AfterFunc(limitCtx, func() {
				l.fail(CodeTimeout, "it sent the beginning of a large message, and not the rest within its timeout")
			})
			timed, stop = limitCtx, func() { keep(); end() }
		}
		return m.awaitRoom(ctx, size, func() func() {
			resume, others := deadline.Pause(timed), pause()
			return func() { others(); resume() }
		})
	}
}

func pauseNone() (resume func()) { return func() {} }

// messageHolder returns a holder for the message that is being read.
func (d *duplex) messageHolder() holder {
	d.memory = d.l.u.Memory(d.l.peer.Owner)
	return d.l.timedHolder(d.l.ctx, d.memory, d.pauseAll)
}

// pauseAll pauses the clocks of all requests that wait for an answer, until the caller calls
// resume.
func (d *duplex) pauseAll() (resume func()) {
	var clocks []*deadline.Clock
	d.mu.Lock()
	for _, q := range d.pending { // in any order: all are paused
		if q.clock != nil {
			clocks = append(clocks, q.clock)
		}
	}
	d.mu.Unlock()
	for _, c := range clocks {
		c.Pause()
	}
	return func() {
		for _, c := range clocks {
			c.Resume()
		}
	}
}
