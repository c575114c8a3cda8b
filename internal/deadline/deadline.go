// Package deadline limits the time of work that may pause: of a run while its call is under way,
// and of a call while its server reports progress or waits for people.
package deadline

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Limits say how long work may take.
type Limits struct {
	Idle  time.Duration // since the start or the last progress, without pauses
	Total time.Duration // the limit in total
}

// A Clock ends the context of work that takes too long.
type Clock struct {
	end  context.CancelCauseFunc
	full time.Duration // the value of idle after each progress

	mu     sync.Mutex
	idle   time.Duration // the rest of [Limits]
	total  time.Duration
	pauses int       // the number of pauses that have not ended
	since  time.Time // the time at which idle and total were last reduced
	timer  *time.Timer
	over   bool
}

// New starts a clock. The context that it returns ends with the parent, or with
// [context.DeadlineExceeded]. The caller must stop the clock.
func New(parent context.Context, l Limits) (context.Context, *Clock) {
	ctx, end := context.WithCancelCause(parent)
	c := &Clock{end: end, full: l.Idle, idle: l.Idle, total: l.Total, since: time.Now()}
	c.mu.Lock() // the timer may fire before the assignment
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(min(c.idle, c.total), func() { c.applyChange(nil) })
	return &limited{parent, ctx, c}, c
}

// unlimited is the Total of [Within]: the pauses have limits of their own.
const unlimited time.Duration = 1 << 62

// Within is [context.WithTimeout] without the time of [Pause]. The context has no Deadline.
func Within(parent context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, c := New(parent, Limits{Idle: timeout, Total: unlimited})
	return ctx, c.Stop
}

// Progress starts the time of Idle again.
func (c *Clock) Progress() { c.applyChange(func() { c.idle = c.full }) }

// Pause stops the time of Idle until Resume was called as often.
func (c *Clock) Pause() { c.applyChange(func() { c.pauses++ }) }

// Resume ends one Pause.
func (c *Clock) Resume() { c.applyChange(func() { c.pauses-- }) }

// applyChange subtracts the time that has passed and makes a change. After the end it does nothing.
func (c *Clock) applyChange(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}

	// The time so far counts before the change does. If it is over, the change comes too late.
	now := time.Now()
	elapsed := now.Sub(c.since)
	c.since = now
	c.total -= elapsed
	if c.pauses == 0 {
		c.idle -= elapsed
	}

	if min(c.idle, c.total) <= 0 {
		c.over = true
		c.timer.Stop()
		c.end(context.DeadlineExceeded)
		return
	}

	if change != nil {
		change()
	}

	remaining := c.total
	if c.pauses == 0 {
		remaining = min(c.idle, c.total)
	}

	c.timer.Reset(remaining)
}

// Stop ends the clock and its context.
func (c *Clock) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.timer.Stop()
	c.end(context.Canceled)
}

type clockKey struct{}

// Pause pauses the clock that ctx comes from, if there is one, until the caller calls resume.
func Pause(ctx context.Context) (resume func()) {
	c, ok := ctx.Value(clockKey{}).(*Clock)
	if !ok {
		return func() {}
	}
	c.Pause()
	return c.Resume
}

// limited is the context of a [Clock]. Unlike that of [context.WithCancelCause], its Err reports
// the timeout, also in derived contexts.
type limited struct {
	context.Context // the parent
	ended           context.Context
	clock           *Clock
}

func (l *limited) Done() <-chan struct{} { return l.ended.Done() }

func (l *limited) Err() error {
	if errors.Is(context.Cause(l.ended), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return l.ended.Err()
}

func (l *limited) Value(key any) any {
	if key == (clockKey{}) {
		return l.clock
	}
	return l.Context.Value(key)
}

// AfterFunc saves package context a goroutine for each derived context.
func (l *limited) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(l.ended, f) }
