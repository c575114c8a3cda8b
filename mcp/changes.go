package mcp

import (
	"sync"
	"time"
)

// A session is fresh from the moment in which the first request of a listing leaves until the server says that its
// tools changed (notifications/tools/list_changed, MCP 2025-11-25, server/tools). So a change announced during a listing
// counts: nobody can say whether the answer was made before it. One announced before does not: the answer was made
// later. A session that has listed nothing is not fresh, and calls nothing.
//
// What a server says in a stream of HTTP behind the answer that the stream is for may be lost with the stream.

// Changed returns the first server, in the order of New, that has a working session and has said since its last listing
// began that its tools changed. Calls to it are refused with CodeChanged until List is called.
func (u *Upstreams) Changed() (server string, changed bool) {
	for _, up := range u.all {
		if s := up.current(); s != nil && !s.fresh.Load() {
			return up.server.Name, true
		}
	}
	return "", false
}

// tolerate counts a message that nobody asked for. A server that sends too many loses its session.
func (s *session) tolerate() error {
	if s.allowance.take(time.Now(), s.limits.Unasked) {
		return nil
	}
	return s.fail(CodeProtocol, "it sent more than %d messages in %s that nobody asked for",
		s.limits.Unasked, unaskedWindow)
}

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
