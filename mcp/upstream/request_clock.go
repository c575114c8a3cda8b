package upstream

import (
	"context"

	"pgfsm/internal/deadline"
)

// clockPauses reports whether the timeout of a method pauses while the server waits for an answer
// of the client. It pauses for the methods in whose results servers of the stateless revisions can
// ask. A list does not pause, because the lists of all servers are awaited together. In the
// stateless revisions no request pauses.
func (l *Link) clockPauses(method string) bool {
	return !l.modern && (method == methodCall || method == "prompts/get" || method == "resources/read")
}

// startClock starts the timeouts of a request. It returns the request's context and clock.
func (l *Link) startClock(ctx context.Context, method string) (context.Context, *deadline.Clock) {
	ctx, c := deadline.New(ctx, l.up.server.requestLimits())
	if l.clockPauses(method) {
		l.requests.addClock(c)
	}
	return ctx, c
}

// stopClock ends the timeouts of a request. Every startClock needs one.
func (l *Link) stopClock(c *deadline.Clock) {
	l.requests.removeClock(c)
	c.Stop()
}
