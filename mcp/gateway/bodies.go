package gateway

import (
	"io"
	"sync"
)

// freely is how much of a body is read without asking for room: nearly all messages are smaller.
const freely = 64 << 10

// Bodies are what clients have sent and was not answered yet, in bytes, as far as it is more than a little: up to a limit for all
// of them, and half of it for one. Connections are many and messages may be large, and a client must not fill the memory by
// beginning messages that it does not end.
type bodies struct {
	mu        sync.Mutex
	all, each int
	taken     int
	per       map[Identity]int
}

func (b *bodies) init(all int) { b.all, b.each, b.per = all, (all+1)/2, make(map[Identity]int) }

// take makes room, which give gives back. False: there is none.
func (b *bodies) take(who Identity, size int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken+size > b.all || b.per[who]+size > b.each {
		return false
	}
	b.taken += size
	b.per[who] += size
	return true
}

func (b *bodies) give(who Identity, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken -= size
	if b.per[who] -= size; b.per[who] == 0 {
		delete(b.per, who)
	}
}

// A share is what something holds of the room for all, beyond the little that it has anyhow. It is taken in steps, so that it is asked for
// seldom. The lock is that of what it is for.
type share struct {
	of   *bodies // nil: it has all the room that it wants
	from Identity
	size int
	over bool // it gets no more
}

// holds takes what is missing for a size. False: there is not so much.
func (s *share) holds(size int) bool {
	missing := size - freely - s.size
	if missing <= 0 || s.of == nil {
		return true
	}
	missing = (missing + freely - 1) / freely * freely
	if s.over || !s.of.take(s.from, missing) {
		return false
	}
	s.size += missing
	return true
}

// back gives all of it back.
func (s *share) back() {
	if s.size > 0 {
		s.of.give(s.from, s.size)
		s.size = 0
	}
}

// room makes room for a body of the exchange. It is given back when the exchange is over.
func (x *exchange) room(size int) error {
	if !x.bodies.take(x.from, size) {
		return errBusy
	}
	x.holds += size
	return nil
}

// keep has the room of the exchange's body outlast it. What it returns gives it back.
func (x *exchange) keep() func() {
	from, size, in := x.from, x.holds, &x.bodies
	x.holds = 0
	return func() {
		if size > 0 {
			in.give(from, size)
		}
	}
}

// readAll reads a body of a size, which is negative if it was not said. It asks for room before it reads more than a little.
func readAll(r io.Reader, size int64, limit int, room func(int) error) ([]byte, error) {
	if size >= 0 {
		if size > freely {
			if err := room(int(size)); err != nil {
				return nil, err
			}
		}
		body := make([]byte, size)
		_, err := io.ReadFull(r, body)
		return body, err
	}
	body, err := io.ReadAll(io.LimitReader(r, freely+1))
	if err == nil && len(body) > freely {
		if err = room(limit); err != nil {
			return nil, err
		}
		var rest []byte
		rest, err = io.ReadAll(io.LimitReader(r, max(0, int64(limit)+1-int64(len(body)))))
		body = append(body, rest...)
	}
	if err == nil && len(body) > limit {
		err = errLarge
	}
	return body, err
}
