package gateway

import (
	"crypto/rand"
	"sync"
	"time"

	"pgfsm/mcp/gateway/session"
)

// Bounds of errands whose clients were asked something.
const (
	maxErrands     = 256             // at once
	maxErrandsEach = 32              // of these, one identity's
	errandKept     = 5 * time.Minute // for which what became of one waits for its client
	errandGrace    = 2 * time.Second // for which those that are ended may tell their servers so
)

// errands are those whose clients were asked something, and have not come back for the answer.
type errands struct {
	room *session.Budget // that requests take

	mu     sync.Mutex
	byID   map[string]*errand
	per    map[Identity]int
	closed bool
}

// add makes an errand known whose client is to be asked something. The errand's lock is held. False: there are too many.
func (t *errands) add(e *errand) bool {
	if e.id != "" {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.byID) >= maxErrands || t.per[e.from] >= maxErrandsEach || e.size > 0 && !t.room.Take(e.from, e.size) {
		return false
	}
	if t.byID == nil {
		t.byID, t.per = make(map[string]*errand), make(map[Identity]int)
	}
	e.id = rand.Text()
	t.byID[e.id] = e
	t.per[e.from]++
	return true
}

func (t *errands) find(id string) *errand {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// ended notes that an errand is over. If nobody waits for it, it is kept for a while, as far as there is room.
func (t *errands) ended(e *errand) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.here.Load() {
		return
	}
	if size := len(e.answer.Result) + len(e.answer.Error); size > session.Small {
		if !t.room.Take(e.from, size) {
			t.drop(e)
			return
		}
		e.size += size
	}
	e.timer = time.AfterFunc(errandKept, func() { t.remove(e) })
}

// remove forgets an errand.
func (t *errands) remove(e *errand) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t.drop(e)
}

// drop is remove for one who holds the errand's lock.
func (t *errands) drop(e *errand) {
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
	t.room.Return(e.from, e.size+e.asking)
	e.size, e.asking = 0, 0
}

// close ends all errands whose clients were asked something, and waits for them, a little. No other client is asked afterwards. It
// returns how many were cut off for which no request waits.
func (t *errands) close() (cut int) {
	t.mu.Lock()
	t.closed = true
	all := make([]*errand, 0, len(t.byID))
	for _, e := range t.byID { // in any order: all are ended
		all = append(all, e)
	}
	t.mu.Unlock()
	for _, e := range all {
		if e.parked() {
			cut++
		}
		e.cancel()
	}
	timer := time.NewTimer(errandGrace)
	defer timer.Stop()
	for _, e := range all {
		select {
		case <-e.over:
		case <-timer.C:
			return cut
		}
	}
	return cut
}

// parked reports whether the errand goes on, and no request of its client waits for it. It takes no lock: who has that may wait for a client
// that does not read.
func (e *errand) parked() bool { return !e.here.Load() && !e.ended() }
