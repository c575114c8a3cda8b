package ask

import (
	"crypto/rand"
	"sync"
	"time"

	"pgfsm/mcp/gateway/session"
)

// Bounds of pending requests whose clients were asked something.
const (
	MaxPending            = 256             // of all clients
	MaxPendingPerIdentity = 32              // of one client
	KeepAnswer            = 5 * time.Minute // for which an outcome waits for its client
	CancelGrace           = 2 * time.Second // for which cancelled requests may tell their servers
)

// A pendingTable has the pending requests whose clients were asked something and have not fetched the outcome.
type pendingTable struct {
	mu     sync.Mutex
	byID   map[string]*Pending
	closed bool
}

// addPending registers a pending request whose client is about to be asked. It reports false if there are too many. The caller has the lock
// of p.
func (r *Relay) addPending(p *Pending) bool {
	if p.id != "" {
		return true
	}
	t := &r.pending
	t.mu.Lock()
	defer t.mu.Unlock()
	same := 0
	for _, other := range t.byID { // in any order: they are counted
		if other.client == p.client {
			same++
		}
	}
	if t.closed || len(t.byID) >= MaxPending || same >= MaxPendingPerIdentity {
		return false
	}
	if p.size > 0 && !r.Table.Bodies.Take(p.client, p.size) {
		return false
	}
	if t.byID == nil {
		t.byID = make(map[string]*Pending)
	}
	p.id = rand.Text()
	t.byID[p.id] = p
	return true
}

func (t *pendingTable) find(id string) *Pending {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// keep keeps the outcome of a request that nobody waits for, for a while and as far as there is room.
func (t *pendingTable) keep(p *Pending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.attended.Load() {
		return
	}
	if size := p.work.Size(); size > session.Small {
		if !p.relay.Table.Bodies.Take(p.client, size) {
			t.removeLocked(p)
			return
		}
		p.size += size
	}
	p.timer = time.AfterFunc(KeepAnswer, func() { t.remove(p) })
}

func (t *pendingTable) remove(p *Pending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.removeLocked(p)
}

// removeLocked is remove for a caller with the lock of p.
func (t *pendingTable) removeLocked(p *Pending) {
	if p.timer != nil {
		p.timer.Stop()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[p.id] != p {
		return
	}
	delete(t.byID, p.id)
	p.relay.Table.Bodies.Return(p.client, p.size+p.bytes)
	p.size, p.bytes = 0, 0
}

// All returns the pending requests whose clients were asked something.
func (r *Relay) All() []*Pending {
	t := &r.pending
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*Pending, 0, len(t.byID))
	for _, p := range t.byID { // in any order
		all = append(all, p)
	}
	return all
}

// Close cancels all pending requests and waits for them, for at most CancelGrace. No other client is asked afterwards. It returns how many
// were cut off for which no request of the client waited.
func (r *Relay) Close() (cut int) {
	r.pending.mu.Lock()
	r.pending.closed = true
	r.pending.mu.Unlock()
	all := r.All()
	for _, p := range all {
		if p.Unattended() {
			cut++
		}
		p.cancel()
	}
	timer := time.NewTimer(CancelGrace)
	defer timer.Stop()
	for _, p := range all {
		select {
		case <-p.Done():
		case <-timer.C:
			return cut
		}
	}
	return cut
}
