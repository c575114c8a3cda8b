package upstream

import (
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/deadline"
)

// serverRequests are the server's requests that wait for an answer of ours.
type serverRequests struct {
	mu     sync.Mutex
	open   map[string]*serverRequest    // by the id
	clocks map[*deadline.Clock]struct{} // of requests of ours that are under way, and pause for questions
}

// A serverRequest is a request of the server that waits.
type serverRequest struct {
	with  *query            // that it came with; nil: none
	holds []*deadline.Clock // which stand still for it
	put   bool              // it was passed on, or is withdrawn: it holds no more clocks than these
}

// free lets go of the clocks.
func (x *serverRequest) free() {
	for _, c := range x.holds {
		c.Resume()
	}
	x.put, x.holds = true, nil
}

// note remembers a request. It reports false if the id is under way, or there are too many.
func (a *serverRequests) note(id jsontext.Value, q *query) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, again := a.open[string(id)]; again || len(a.open) >= maxOwed {
		return false
	}
	if a.open == nil {
		a.open = make(map[string]*serverRequest)
	}
	a.open[string(id)] = &serverRequest{with: q}
	return true
}

// hold stops the clock of what a request came with, until it is answered, withdrawn or dropped; if it came with nothing, the clocks of all
// that are under way, for it may belong to any of them. It is called when the request was passed on: one that was refused by then is no
// longer there and stops nothing, and one that waits to be passed on does not, either.
func (a *serverRequests) hold(id jsontext.Value) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.open[string(id)]
	if x == nil || x.put {
		return
	}
	x.put = true
	if x.with == nil {
		for c := range a.clocks { // in any order: all of them stop
			x.holds = append(x.holds, c)
		}
	} else if _, pauses := a.clocks[x.with.clock]; pauses {
		x.holds = append(x.holds, x.with.clock)
	}
	for _, c := range x.holds {
		c.Pause()
	}
}

// withdraw has a request hold no clock any more: the server says that it does not wait. It may still be answered.
func (a *serverRequests) withdraw(id jsontext.Value) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x := a.open[string(id)]; x != nil {
		x.free()
	}
}

// take forgets a request, and reports whether it waited.
func (a *serverRequests) take(id jsontext.Value) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.open[string(id)]
	if x == nil {
		return false
	}
	x.free()
	delete(a.open, string(id))
	return true
}

// drop forgets what came with q: it is over, and nobody waits for the answers.
func (a *serverRequests) drop(q *query) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, x := range a.open { // in any order
		if x.with == q {
			x.free()
			delete(a.open, id)
		}
	}
}

// watch has a clock stand still for requests that come with nothing, until unwatch.
func (a *serverRequests) watch(c *deadline.Clock) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clocks == nil {
		a.clocks = make(map[*deadline.Clock]struct{})
	}
	a.clocks[c] = struct{}{}
}

func (a *serverRequests) unwatch(c *deadline.Clock) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.clocks, c)
}
