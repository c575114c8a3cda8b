package session

import (
	"slices"
	"sync"

	"pgfsm/internal/canonical"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

// Small is the largest message, in bytes, that takes nothing from a [Budget]. Nearly all messages are smaller.
const Small = 64 << 10

// A Budget bounds the memory of large messages: of all together, and of one client half of that. It counts
// requests that are not answered yet, answers that are being written, events kept for Last-Event-ID and messages that belong to no request.
// Clients may send large messages slowly, and read slowly or not at all; without a budget a few of them fill the memory.
type Budget struct {
	mu         sync.Mutex
	all, each  int
	taken      int
	byIdentity map[Identity]int
	writes     []*Write // writes under way, the oldest first
}

// NewBudget returns a budget of this many bytes.
func NewBudget(all int) *Budget {
	return &Budget{all: all, each: (all + 1) / 2, byIdentity: make(map[Identity]int)}
}

// Take reserves bytes, which Return gives back. It reports false if too few are left.
func (b *Budget) Take(client Identity, size int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken+size > b.all || b.byIdentity[client]+size > b.each {
		return false
	}
	b.add(client, size)
	return true
}

// Return gives reserved bytes back.
func (b *Budget) Return(client Identity, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(client, -size)
}

// Size returns the number of reserved bytes.
func (b *Budget) Size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken
}

func (b *Budget) add(client Identity, size int) {
	b.taken += size
	if b.byIdentity[client] += size; b.byIdentity[client] == 0 {
		delete(b.byIdentity, client)
	}
}

// A Write is a message that waits until a connection has taken its bytes.
type Write struct {
	budget *Budget
	client Identity
	size   int
	conn   Connection
}

// A Connection can be closed while it writes.
type Connection interface{ Cut() }

// StartWrite reserves the bytes of a message that is about to be written, until End is called. The message is never refused: its call was
// made and recorded. If there is no room, StartWrite closes connections, as those of any client that does not read. It takes the slowest
// connection of the same client if that client has more than half, else of the client that has most.
func (b *Budget) StartWrite(client Identity, size int, conn Connection) *Write {
	w := &Write{budget: b, client: client, size: size, conn: conn}
	b.mu.Lock()
	defer b.mu.Unlock()

	b.writes = append(b.writes, w)
	b.add(client, size)
	for slow := b.slowest(w); slow != nil; slow = b.slowest(w) {
		b.remove(func(other *Write) bool { return other.conn == slow.conn })
		go slow.conn.Cut() // in a goroutine, because Cut waits for the writer
	}
	return w
}

// slowest returns the write that must make room for another; nil if there is room, or no other write is under way.
func (b *Budget) slowest(w *Write) (found *Write) {
	overOwn := b.byIdentity[w.client] > b.each
	if !overOwn && b.taken <= b.all {
		return nil
	}

	for _, other := range b.writes {
		if other == w || overOwn && other.client != w.client {
			continue
		}
		if found == nil || b.byIdentity[other.client] > b.byIdentity[found.client] {
			found = other
		}
	}
	return found
}

// End ends the write and gives its bytes back.
func (w *Write) End() {
	w.budget.mu.Lock()
	defer w.budget.mu.Unlock()
	w.budget.remove(func(other *Write) bool { return other == w })
}

// remove removes writes and gives their bytes back.
func (b *Budget) remove(ended func(*Write) bool) {
	b.writes = slices.DeleteFunc(b.writes, func(w *Write) bool {
		if !ended(w) {
			return false
		}
		b.add(w.client, -w.size)
		return true
	})
}

// The memory that a message takes while the gates read it, as TestMemoryOfLargeMessages in package bench measures it.
const (
	perByte      = 24   // for each of the first maxArguments bytes
	perByteMore  = 4    // for each further byte: no gate reads larger arguments
	perValue     = 1000 // for each member and each element
	maxArguments = policy.MaxArgumentsBytes
	SmallBody    = Small / perByte // largest message, in bytes, that takes nothing
)

// MemoryOf returns the memory that a message of this size may take, apart from its values.
func MemoryOf(size int) int {
	return perByte*min(size, maxArguments) + perByteMore*max(0, size-maxArguments)
}

// MemoryOfValues returns the memory that the values of a message may take. A message with more than [wire.MaxValues] is only refused.
func MemoryOfValues(message []byte) int {
	values, _ := canonical.Outline(message)
	if values > wire.MaxValues {
		return 0
	}
	return perValue * values
}

// A reservation is the memory that one queue has taken from a budget beyond its [Small] free bytes. It grows in steps of Small, so that
// the budget's lock is seldom taken. The lock of the queue guards it.
type reservation struct {
	budget *Budget
	client Identity
	size   int
	closed bool
}

// grow makes the reservation large enough for a queue of this size. It reports false if the budget has too little left.
func (r *reservation) grow(size int) bool {
	missing := size - Small - r.size
	if missing <= 0 {
		return true
	}

	missing = (missing + Small - 1) / Small * Small
	if r.closed || !r.budget.Take(r.client, missing) {
		return false
	}
	r.size += missing
	return true
}

// release gives the whole reservation back.
func (r *reservation) release() {
	if r.size > 0 {
		r.budget.Return(r.client, r.size)
		r.size = 0
	}
}
