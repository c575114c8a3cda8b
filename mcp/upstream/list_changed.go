package upstream

import (
	"sync"
	"time"
)

// A listing is good from the moment in which its first request leaves until the server says that its tools changed
// (notifications/tools/list_changed, MCP 2025-11-25, server/tools), or its session ends. So a change announced during a
// listing counts: nobody can say whether the answer was made before it. One announced before does not: the answer was
// made later. Moments are numbered, over all sessions of Upstreams, so that of several runs that share a session each
// is held to its own listing: what another run lists later makes an old listing no better.
//
// What a server says in a stream of HTTP behind the answer that the stream is for may be lost with the stream.

// Changed reports whether the server has said since this listing of it began that its tools changed, or has another
// session by now. Calls by that listing are refused with CodeChanged. A server without a working session has said
// nothing; calls to it are refused for that.
func (u *Upstreams) Changed(server string, listing uint64) bool {
	up := u.byName[server]
	if up == nil {
		return false
	}
	l := up.current()
	return l != nil && l.Changed(listing)
}

// good reports whether a listing is this session's, and the newest that the server has spoken of.
func (l *Link) good(listing uint64) bool { return listing > l.since.Load() }

// changed notes that every listing so far is out of date.
func (l *Link) changed() { l.since.Store(l.u.moments.Add(1)) }

// An allowance counts what came within a window of time. The zero value has counted nothing.
type allowance struct {
	mu    sync.Mutex
	since time.Time
	used  int
}

// take reports whether one more, at the time now, is within limit. A window of unaskedWindow begins with the first.
func (a *allowance) take(now time.Time, limit int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.since) >= unaskedWindow {
		a.since, a.used = now, 0
	}
	a.used++
	return a.used <= limit
}
