package front

import (
	"container/list"
	"sync"

	"pgfsm/mcp/gateway/session"
)

// A writeBudget bounds the bytes of large messages that wait to be written, to all clients and to half of that for one. A client may read
// slowly or not at all. If there is no room for a message, the connection that has taken longest over its message is closed, like that of
// any client that does not read. The new message is never refused: its call was made and recorded. So one message may have any size.
type writeBudget struct {
	mu         sync.Mutex
	all, each  int
	taken      int
	byIdentity map[session.Identity]*writes
}

// writes are the pending writes of one client, the oldest first.
type writes struct {
	list.List
	taken int
}

// A pendingWrite waits until a connection has taken its bytes.
type pendingWrite struct {
	budget *writeBudget
	client session.Identity
	size   int
	conn   interface{ Cut() }
	place  *list.Element // nil: the write has ended
}

func (b *writeBudget) init(all int) {
	b.all, b.each, b.byIdentity = all, (all+1)/2, make(map[session.Identity]*writes)
}

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
	own := b.byIdentity[client]
	if own == nil {
		own = new(writes)
		b.byIdentity[client] = own
	}
	p.place = own.PushBack(p)
	own.taken += size
	b.taken += size
	for own.taken > b.each && own.Front() != p.place {
		b.cutOldest(own)
	}
	for b.taken > b.all {
		w := b.largest(p)
		if w == nil {
			break
		}
		b.cutOldest(w)
	}
	return p
}

// end removes a write that is over.
func (p *pendingWrite) end() {
	if p == nil {
		return
	}
	p.budget.mu.Lock()
	defer p.budget.mu.Unlock()
	if p.place != nil {
		p.budget.remove(p)
	}
}

// cutOldest closes the connection of the oldest write and removes all of that connection. The caller holds the lock.
func (b *writeBudget) cutOldest(w *writes) {
	oldest := w.Front().Value.(*pendingWrite)
	for e := w.Front(); e != nil; {
		p := e.Value.(*pendingWrite)
		if e = e.Next(); p.conn == oldest.conn {
			b.remove(p)
		}
	}
	go oldest.conn.Cut() // it waits for the writer
}

// largest are the writes of the client that has most bytes pending; nil if there is only the new write. The caller holds the lock.
func (b *writeBudget) largest(added *pendingWrite) (found *writes) {
	for _, w := range b.byIdentity { // in any order: of two equal clients either may be cut off
		if w.Front() != added.place && (found == nil || w.taken > found.taken) {
			found = w
		}
	}
	return found
}

// remove removes a write. The caller holds the lock.
func (b *writeBudget) remove(p *pendingWrite) {
	w := b.byIdentity[p.client]
	w.Remove(p.place)
	p.place = nil
	w.taken -= p.size
	if b.taken -= p.size; w.Len() == 0 {
		delete(b.byIdentity, p.client)
	}
}
