package mcp

import (
	"sync"
	"time"
)

// endingWait is how long the end of a stream may stay unread behind its answer, if nothing else is asked meanwhile. Servers end a stream
// in a packet of its own right after the answer; a goroutine that waits for it costs more than the reading of both.
const endingWait = 10 * time.Millisecond

// An ending is what comes of a stream behind its answer.
type ending struct {
	events *eventReader
	body   *responseBody
	cut    func() // ends it
	rest   func() // lets go of everything; to be called once
}

// An endings holds the ending of a link's last stream until somebody has a reason to look at it: the next request, for what the server has
// said before is heard before; or that nobody has for a while.
type endings struct {
	mu    sync.Mutex
	last  *ending     // nil: none is unread
	late  *time.Timer // nil: there never was one
	wait  time.Duration
	ended bool
}

// keep keeps an ending. It reports false where it cannot: it is then to be heard at once.
func (e *endings) keep(one *ending, late func()) bool {
	b, ok := one.body.ReadCloser.(*laneBody)
	if !ok || one.body.over {
		return false
	}
	if !b.between() || one.events.src.Buffered() > 0 {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended || e.last != nil {
		return false
	}
	if e.last = one; e.late == nil {
		e.late = time.AfterFunc(e.wait, late)
	} else {
		e.late.Reset(e.wait)
	}
	return true
}

// take takes the ending that is unread; nil: there is none.
func (e *endings) take() *ending {
	e.mu.Lock()
	defer e.mu.Unlock()
	one := e.last
	e.last = nil
	return one
}

// end takes no more of them, and returns what there is.
func (e *endings) end() *ending {
	e.mu.Lock()
	e.ended = true
	if e.late != nil {
		e.late.Stop()
	}
	e.mu.Unlock()
	return e.take()
}

// hearLast hears the ending of the last stream: at once if it is only the end and has come, else beside everything else.
func (h *httpCarrier) hearLast() {
	switch one := h.endings.take(); {
	case one == nil:
	case one.body.ReadCloser.(*laneBody).settle():
		one.rest()
	default:
		h.hearOut(one)
	}
}

// hearOut hears the ending of a stream beside everything else.
func (h *httpCarrier) hearOut(one *ending) {
	if !h.l.tasks.run(func() { h.drain(one.events, one.cut, one.rest) }) {
		one.rest()
	}
}
