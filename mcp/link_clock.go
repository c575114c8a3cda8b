package mcp

import (
	"context"
	"sync"
	"time"
)

// mostStill is for how long the clock of one request may stand still, all in all: as long as people have for their answers where the gateway
// itself waits for them. A server that asks and never ends has no more than that, however often it asks.
const mostStill = 10 * time.Minute

// A clock is the time that one request of ours has. It stands still while the server waits for answers of ours that belong to the
// request: people think for longer than servers work.
type clock struct {
	end context.CancelCauseFunc

	mu    sync.Mutex
	left  time.Duration // of the time that the request has
	spare time.Duration // for which the clock may stand still yet
	holds int           // questions that hold it
	since time.Time     // left and spare are those of this moment
	timer *time.Timer
	over  bool
}

// newClock starts a clock and returns the context that it ends, with [context.DeadlineExceeded] as the cause. It must be stopped.
func newClock(ctx context.Context, left, spare time.Duration) (context.Context, *clock) {
	ctx, end := context.WithCancelCause(ctx)
	c := &clock{end: end, left: left, spare: spare, since: time.Now()}
	c.mu.Lock() // the timer may be quicker than the assignment
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(left, func() { c.turn(0) })
	return ctx, c
}

// hold has a question more hold the clock, and free a question less.
func (c *clock) hold() { c.turn(1) }
func (c *clock) free() { c.turn(-1) }

// turn takes note of the time that has passed, and then of by how many questions more hold the clock. What comes when the time is over
// changes nothing any more.
func (c *clock) turn(by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	now := time.Now()
	gone := now.Sub(c.since)
	c.since = now
	if c.holds > 0 {
		still := min(gone, c.spare)
		c.spare -= still
		gone -= still
	}
	if c.left -= gone; c.left <= 0 {
		c.over = true
		c.timer.Stop()
		c.end(context.DeadlineExceeded)
		return
	}
	rest := c.left
	if c.holds += by; c.holds > 0 {
		rest += c.spare
	}
	c.timer.Reset(rest)
}

// stop ends the clock and its context.
func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.timer.Stop()
	c.end(nil)
}

// asksDuring reports whether people are waited for during a request: those that the stateless revisions have servers ask in. A list that
// waited would have everything else wait that is put together with it, page by page.
func asksDuring(method string) bool {
	return method == methodCall || method == "prompts/get" || method == "resources/read"
}

// start gives a request its time, and returns the context that ends with it and the clock for its query. In the stateless revisions
// servers ask in results, and no request waits meanwhile: what one asks in another way gains it nothing.
func (l *Link) start(ctx context.Context, method string, left time.Duration) (context.Context, *clock) {
	spare := mostStill
	if l.modern || !asksDuring(method) {
		spare = 0
	}
	ctx, c := newClock(ctx, left, spare)
	l.asked.watch(c)
	return ctx, c
}

// stop is to be called when the request is over.
func (l *Link) stop(c *clock) {
	l.asked.unwatch(c)
	c.stop()
}
