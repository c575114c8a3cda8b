package gateway

import (
	"container/list"
	"sync"
)

// Unsent is what waits to be written to clients, in bytes, as far as it is more than a little: up to a limit for all of them, and half of
// it for one. A client may read slowly or not at all, and what it asked for stays here meanwhile. If there is no room for what comes, that
// which waits for longest gives way, and its connection is cut off, as that of any client who does not read. What comes is not refused:
// its call was made, and is recorded. So one answer has room whatever its size.
type unsent struct {
	mu        sync.Mutex
	all, each int
	taken     int
	per       map[Identity]*waiting
}

// Waiting is what waits for one client: parcels, the oldest first.
type waiting struct {
	list.List
	taken int
}

// A cutter is a connection that can be closed at once.
type cutter interface{ Cut() }

// A parcel waits to be written to a connection.
type parcel struct {
	of    *unsent
	from  Identity
	size  int
	conn  cutter
	place *list.Element // nil: it does not wait any more
}

func (u *unsent) init(all int) { u.all, u.each, u.per = all, (all+1)/2, make(map[Identity]*waiting) }

// waits notes what is about to be written to the client, together, until the parcel's end is called. Of little there is no parcel, and none
// where there is no connection to cut off.
func (x *exchange) waits(messages ...[]byte) *parcel {
	size := 0
	for _, m := range messages {
		size += len(m)
	}
	if size <= freely || x == nil || x.conn == nil {
		return nil
	}
	return x.unsent.add(x.conn, x.from, size)
}

func (u *unsent) add(c cutter, from Identity, size int) *parcel {
	p := &parcel{of: u, from: from, size: size, conn: c}
	u.mu.Lock()
	defer u.mu.Unlock()
	own := u.per[from]
	if own == nil {
		own = new(waiting)
		u.per[from] = own
	}
	p.place = own.PushBack(p)
	own.taken += size
	u.taken += size
	for own.taken > u.each && own.Front() != p.place {
		u.shed(own)
	}
	for u.taken > u.all {
		w := u.most(p)
		if w == nil {
			break
		}
		u.shed(w)
	}
	return p
}

// end says that the parcel was written, or will not be.
func (p *parcel) end() {
	if p == nil {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.place != nil {
		p.of.forget(p)
	}
}

// shed cuts off the connection of the oldest parcel, with all that waits for it. The caller holds the lock.
func (u *unsent) shed(w *waiting) {
	oldest := w.Front().Value.(*parcel)
	for e := w.Front(); e != nil; {
		p := e.Value.(*parcel)
		if e = e.Next(); p.conn == oldest.conn {
			u.forget(p)
		}
	}
	go oldest.conn.Cut() // which waits until who writes has noticed
}

// most is what waits for the client for whom most waits; nil if there is nothing but what came just now. The caller holds the lock.
func (u *unsent) most(came *parcel) (found *waiting) {
	for _, w := range u.per { // in any order: of two that are alike either may give way
		if w.Front() != came.place && (found == nil || w.taken > found.taken) {
			found = w
		}
	}
	return found
}

// forget takes a parcel out. The caller holds the lock.
func (u *unsent) forget(p *parcel) {
	w := u.per[p.from]
	w.Remove(p.place)
	p.place = nil
	w.taken -= p.size
	if u.taken -= p.size; w.Len() == 0 {
		delete(u.per, p.from)
	}
}
