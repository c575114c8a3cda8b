package gateway

import (
	"crypto/rand"
	"sync"
	"time"

	"pgfsm/mcp/gateway/session"
)

// Bounds of errands whose clients were asked something.
const (
	maxPending            = 256             // at once
	maxPendingPerIdentity = 32              // of these, one identity's
	keepAnswerFor         = 5 * time.Minute // for which what became of one waits for its client
	cancelGrace           = 2 * time.Second // for which those that are ended may tell their servers so
)

// errands are those whose clients were asked something, and have not come back for the answer.
type pendingRequests struct {
	bodies *session.Budget // that requests take

	mu     sync.Mutex
	byID   map[string]*pendingRequest
	per    map[Identity]int
	closed bool
}

// add makes an errand known whose client is to be asked something. The errand's lock is held. False: there are too many.
func (t *pendingRequests) add(e *pendingRequest) bool {
	if e.id != "" {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.byID) >= maxPending || t.per[e.from] >= maxPendingPerIdentity || e.size > 0 && !t.bodies.Take(e.from, e.size) {
		return false
	}
	if t.byID == nil {
		t.byID, t.per = make(map[string]*pendingRequest), make(map[Identity]int)
	}
	e.id = rand.Text()
	t.byID[e.id] = e
	t.per[e.from]++
	return true
}

func (t *pendingRequests) find(id string) *pendingRequest {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// ended notes that an errand is over. If nobody waits for it, it is kept for a while, as far as there is room.
func (t *pendingRequests) ended(e *pendingRequest) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.attended.Load() {
		return
	}
	if size := len(e.answer.Result) + len(e.answer.Error); size > session.Small {
		if !t.bodies.Take(e.from, size) {
			t.drop(e)
			return
		}
		e.size += size
	}
	e.timer = time.AfterFunc(keepAnswerFor, func() { t.remove(e) })
}

// remove forgets an errand.
func (t *pendingRequests) remove(e *pendingRequest) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t.drop(e)
}

// drop is remove for one who holds the errand's lock.
func (t *pendingRequests) drop(e *pendingRequest) {
	if e.timer != nil {
		e.timer.Stop()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[e.id] != e {
		return
	}
	delete(t.byID, e.id)
	if t.per[e.from]--; t.per[e.from] == 0 {
		delete(t.per, e.from)
	}
	t.bodies.Return(e.from, e.size+e.questionBytes)
	e.size, e.questionBytes = 0, 0
}

// close ends all errands whose clients were asked something, and waits for them, a little. No other client is asked afterwards. It
// returns how many were cut off for which no request waits.
func (t *pendingRequests) close() (cut int) {
	t.mu.Lock()
	t.closed = true
	all := make([]*pendingRequest, 0, len(t.byID))
	for _, e := range t.byID { // in any order: all are ended
		all = append(all, e)
	}
	t.mu.Unlock()
	for _, e := range all {
		if e.unattended() {
			cut++
		}
		e.cancel()
	}
	timer := time.NewTimer(cancelGrace)
	defer timer.Stop()
	for _, e := range all {
		select {
		case <-e.finished:
		case <-timer.C:
			return cut
		}
	}
	return cut
}
