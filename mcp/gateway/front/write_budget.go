package front

import (
	"slices"
	"sync"

	"pgfsm/mcp/gateway/session"
)

// A writeBudget bounds the bytes of large messages that wait to be written, to all clients and to half of that for one. A client may read
// slowly or not at all. If there is no room for a message, the connection that has taken longest over its message is closed, like that of
// any client that does not read. The new message is never refused: its call was made and recorded. So one message may have any size.
type writeBudget struct {
	mu        sync.Mutex
	all, each int
	pending   []*pendingWrite // the oldest first
}

// A pendingWrite waits until a connection has taken its bytes.
type pendingWrite struct {
	budget *writeBudget
	client session.Identity
	size   int
	conn   interface{ Cut() }
}

func (b *writeBudget) init(all int) { b.all, b.each = all, (all+1)/2 }

// reserveWrite registers messages that are about to be written together, until end is called. For small messages, and without a connection
// to close, it returns nil.
func (x *exchange) reserveWrite(messages ...[]byte) *pendingWrite {
	size := 0
	for _, m := range messages {
		size += len(m)
	}
	if size <= session.Small || x == nil || x.conn == nil {
		return nil
	}
	return x.writes.add(x.conn, x.from, size)
}

func (b *writeBudget) add(conn interface{ Cut() }, client session.Identity, size int) *pendingWrite {
	p := &pendingWrite{budget: b, client: client, size: size, conn: conn}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending = append(b.pending, p)
	for {
		all, each := b.count()
		over := each[client] // nil if the new write went with its connection
		if over != nil && (over.bytes <= b.each || over.oldest == p) {
			over = nil
		}
		if over == nil && all > b.all {
			for _, w := range each { // in any order: of two equal clients either may be cut off
				if w.oldest != p && (over == nil || w.bytes > over.bytes) {
					over = w
				}
			}
		}
		if over == nil {
			return p
		}
		cut := over.oldest.conn
		b.pending = slices.DeleteFunc(b.pending, func(w *pendingWrite) bool { return w.conn == cut })
		go cut.Cut() // it waits for the writer
	}
}

// writes are the pending writes of one client.
type writes struct {
	bytes  int
	oldest *pendingWrite
}

// count returns how many bytes are pending, and the writes of each client. The caller holds the lock.
func (b *writeBudget) count() (all int, each map[session.Identity]*writes) {
	each = make(map[session.Identity]*writes)
	for _, p := range b.pending {
		w := each[p.client]
		if w == nil {
			w = &writes{oldest: p}
			each[p.client] = w
		}
		w.bytes += p.size
		all += p.size
	}
	return all, each
}

// end removes a write that is over.
func (p *pendingWrite) end() {
	if p == nil {
		return
	}
	p.budget.mu.Lock()
	defer p.budget.mu.Unlock()
	p.budget.pending = slices.DeleteFunc(p.budget.pending, func(w *pendingWrite) bool { return w == p })
}
