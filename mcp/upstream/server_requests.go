package upstream

import (
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/deadline"
)

// serverRequests holds the requests of the server that wait for our answer.
type serverRequests struct {
	mu   sync.Mutex
	open map[string]*serverRequest // key: the request's id
	// Clocks of our requests under way that pause for the server's requests.
	clocks map[*deadline.Clock]struct{}
}

// A serverRequest is a request of the server that waits for our answer.
type serverRequest struct {
	with  *query            // our request with which it arrived; nil: none
	holds []*deadline.Clock // clocks that it pauses
	put   bool              // delivered or withdrawn: it pauses no other clocks
}

// free resumes the clocks that the request pauses.
func (x *serverRequest) free() {
	for _, c := range x.holds {
		c.Resume()
	}
	x.put, x.holds = true, nil
}

// note registers a request. It reports false if its id is under way, or there are too many.
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

// hold pauses the clock of the query with which a request arrived, until the request is answered,
// withdrawn or dropped. If it arrived with no query, it may belong to any, so all clocks pause.
// hold is called after the request was delivered: a refused request pauses nothing.
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

// withdraw resumes the clocks of a request that the server has cancelled. It may still be answered.
func (a *serverRequests) withdraw(id jsontext.Value) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x := a.open[string(id)]; x != nil {
		x.free()
	}
}

// take removes a request, and reports whether it was waiting.
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

// drop removes the requests that arrived with q, which is over.
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

// watch lets requests of the server pause a clock until unwatch.
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
