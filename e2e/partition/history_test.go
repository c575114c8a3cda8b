//go:build linux

package partition_test

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// A clock gives times that never repeat, in nanoseconds since the test began.
type clock struct {
	began time.Time
	last  atomic.Int64
}

func (c *clock) now() int64 {
	for {
		last := c.last.Load()
		at := max(int64(time.Since(c.began)), last+1)
		if c.last.CompareAndSwap(last, at) {
			return at
		}
	}
}

// never is when an operation returned whose outcome nobody knows.
const never = math.MaxInt64

// A request is one call that a client asked for, once or several times.
type request struct {
	op, tool, actor string
	token           string // id of the token that it came with, the first time
	limit           int
	asked           int64  // the first time
	held            int64  // when the client was told that it waits; 0: never
	run             string // as the client was told
	result          string // the text of the tool's result, or the code of the last refusal; empty: unknown
	effect          string // as the last refusal says
	attempts        int
	done            bool // it has a result or a final refusal
}

// A vote is one person's about one run.
type vote struct {
	run, by, token string
	approve        bool
	asked          int64
	answered       int64  // never: its outcome is unknown
	result         string // the status of the run, as it was then, or the code of a refusal
}

// A revocation is of a token.
type revocation struct {
	token, name     string
	asked, answered int64 // never: unknown
}

// A history is what clients did and saw.
type history struct {
	clock
	mu          sync.Mutex
	requests    []*request // of the goroutine of its client until the end
	votes       []*vote
	revocations []revocation
	operations  atomic.Int64   // requests, without those refused because the database was away, and questions after held calls
	told        map[string]int // what clients were told, and how often
}

func (h *history) add(r *request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = append(h.requests, r)
}

// tells notes what a client was told.
func (h *history) tells(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told[what]++
}

func (h *history) voted(v *vote) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.votes = append(h.votes, v)
	h.operations.Add(1)
}

func (h *history) revoked(r revocation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.revocations = append(h.revocations, r)
	h.operations.Add(1)
}
