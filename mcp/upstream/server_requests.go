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
	query  *query            // our request with which it arrived; nil: none
	paused []*deadline.Clock // clocks that it pauses
	final  bool              // delivered or withdrawn: it pauses no other clocks
}

// resumeClocks resumes the clocks that the request pauses.
func (x *serverRequest) resumeClocks() {
	for _, c := range x.paused {
		c.Resume()
	}
	x.final, x.paused = true, nil
}

// register registers a request. It reports false if its id is under way, or there are too many.
func (a *serverRequests) register(id jsontext.Value, q *query) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, open := a.open[string(id)]; open || len(a.open) >= maxOwed {
		return false
	}
	if a.open == nil {
		a.open = make(map[string]*serverRequest)
	}
	a.open[string(id)] = &serverRequest{query: q}
	return true
}

// pauseClocks pauses the clock of the query with which a request arrived, until the request is
// answered, withdrawn or dropped. If it arrived with no query, it may belong to any, so all clocks
// pause. The request has been delivered before: a refused request pauses nothing.
func (a *serverRequests) pauseClocks(id jsontext.Value) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.open[string(id)]
	if x == nil || x.final {
		return
	}
	x.final = true
	if x.query == nil {
		for c := range a.clocks { // in any order: all of them stop
			x.paused = append(x.paused, c)
		}
	} else if _, pauses := a.clocks[x.query.clock]; pauses {
		x.paused = append(x.paused, x.query.clock)
	}
	for _, c := range x.paused {
		c.Pause()
	}
}

// withdraw resumes the clocks of a request that the server has cancelled. It may still be answered.
func (a *serverRequests) withdraw(id jsontext.Value) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x := a.open[string(id)]; x != nil {
		x.resumeClocks()
	}
}

// removeWaiting removes a request, and reports whether it was waiting.
func (a *serverRequests) removeWaiting(id jsontext.Value) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.open[string(id)]
	if x == nil {
		return false
	}
	x.resumeClocks()
	delete(a.open, string(id))
	return true
}

// dropRequestsOf removes the requests that arrived with q, which is over.
func (a *serverRequests) dropRequestsOf(q *query) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, x := range a.open { // in any order
		if x.query == q {
			x.resumeClocks()
			delete(a.open, id)
		}
	}
}

// addClock lets requests of the server pause a clock until removeClock.
func (a *serverRequests) addClock(c *deadline.Clock) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clocks == nil {
		a.clocks = make(map[*deadline.Clock]struct{})
	}
	a.clocks[c] = struct{}{}
}

func (a *serverRequests) removeClock(c *deadline.Clock) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.clocks, c)
}
