package session

import (
	"slices"
	"sync"

	"pgfsm/internal/canonical"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

// Small is the largest message, in bytes, that takes nothing from a [Budget]. Nearly all messages
// are smaller.
const Small = 64 << 10

// A Budget bounds the memory of large messages: of all together, and of one client half of that. It
// counts requests that are not answered yet, answers that are being written, events kept for
// Last-Event-ID and messages that belong to no request. Clients may send large messages slowly, and
// read slowly or not at all; without a budget a few of them fill the memory.
type Budget struct {
	mu     sync.Mutex
	bytes  quota
	writes []*Write // writes under way, the oldest first
}

// NewBudget returns a budget of this many bytes.
func NewBudget(total int) *Budget {
	return &Budget{bytes: newQuota(total, (total+1)/2)}
}

// Take reserves bytes, which Return gives back. It reports false if too few are left.
func (b *Budget) Take(client Identity, size int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	fits := b.bytes.fits(client, size)
	if fits {
		b.bytes.add(client, size)
	}
	return fits
}

// Return gives reserved bytes back.
func (b *Budget) Return(client Identity, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes.add(client, -size)
}

// Size returns the number of reserved bytes.
func (b *Budget) Size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes.taken
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

// StartWrite reserves the bytes of a message that is about to be written, until End is called. The
// message is never refused: its call was made and recorded. If there is no room, StartWrite closes
// connections, as those of any client that does not read. It takes the slowest connection of the
// same client if that client has more than half, else of the client that has most.
func (b *Budget) StartWrite(client Identity, size int, conn Connection) *Write {
	w := &Write{budget: b, client: client, size: size, conn: conn}
	b.mu.Lock()
	defer b.mu.Unlock()

	b.writes = append(b.writes, w)
	b.bytes.add(client, size)
	for slow := b.slowestWrite(w); slow != nil; slow = b.slowestWrite(w) {
		b.removeWrites(func(other *Write) bool { return other.conn == slow.conn })
		go slow.conn.Cut() // in a goroutine, because Cut waits for the writer
	}
	return w
}

// slowestWrite returns the write that must make room for another; nil if there is room, or no other
// write is under way.
func (b *Budget) slowestWrite(w *Write) (found *Write) {
	overOwn := b.bytes.byClient[w.client] > b.bytes.each
	if !overOwn && b.bytes.taken <= b.bytes.all {
		return nil
	}

	// The oldest write of the client that holds most must make room.
	for _, other := range b.writes {
		if other == w || overOwn && other.client != w.client {
			continue
		}
		if found == nil || b.bytes.byClient[other.client] > b.bytes.byClient[found.client] {
			found = other
		}
	}
	return found
}

// End ends the write and gives its bytes back.
func (w *Write) End() {
	w.budget.mu.Lock()
	defer w.budget.mu.Unlock()
	w.budget.removeWrites(func(other *Write) bool { return other == w })
}

// removeWrites removes writes and gives their bytes back.
func (b *Budget) removeWrites(ended func(*Write) bool) {
	b.writes = slices.DeleteFunc(b.writes, func(w *Write) bool {
		if !ended(w) {
			return false
		}
		b.bytes.add(w.client, -w.size)
		return true
	})
}

// The memory that a message takes while the gates read it, as TestMemoryOfLargeMessages in package
// bench measures it.
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

// MemoryOfValues returns the memory that the values of a message may take. A message with more than
// [wire.MaxValues] is only refused.
func MemoryOfValues(message []byte) int {
	values, _ := canonical.Outline(message)
	if values > wire.MaxValues {
		return 0
	}
	return perValue * values
}
