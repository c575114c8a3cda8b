package upstream

import (
	"cmp"
	"sync"
	"time"
)

// A listing is good from the moment in which its first request is sent until the server announces
// changed tools (notifications/tools/list_changed, MCP 2025-11-25, server/tools) or the session
// ends. A change that is announced during a listing counts, because nobody knows whether the server
// answered before it. Moments are numbered over all sessions of Upstreams. So each of several runs
// that share a session is held to its own listing: a later listing of another run does not make an
// old one good.
//
// Messages after the answer on its HTTP stream may be lost with the stream.

// Forget drops the cached listings of a server up to the one with this number, over all links; 0:
// all. The next caller of each link has the tools listed again. Calls under way keep the listing
// that they were judged by.
func (u *Upstreams) Forget(server string, listing uint64) {
	if up := u.byName[server]; up != nil {
		listing = cmp.Or(listing, u.moments.Load())
		for old := up.stale.Load(); old < listing && !up.stale.CompareAndSwap(old, listing); old = up.stale.Load() {
		}
	}
}

// listingCurrent reports whether a listing is from this session, and the server has announced no
// change since.
func (l *Link) listingCurrent(listing uint64) bool { return listing > l.staleUntil.Load() }

// invalidateListings marks every listing so far as out of date.
func (l *Link) invalidateListings() { l.staleUntil.Store(l.u.moments.Add(1)) }

// An allowance counts messages within a window of time. The zero value has counted none.
type allowance struct {
	mu    sync.Mutex
	since time.Time
	used  int
}

// countMessage counts one more message and reports whether it is within limit. A window begins with
// its first message.
func (a *allowance) countMessage(now time.Time, limit int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.since) >= unaskedWindow {
		a.since, a.used = now, 0
	}
	a.used++
	return a.used <= limit
}
