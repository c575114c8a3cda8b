// Package current keeps a value that is replaced while it is in use. Each user keeps the value that was current when it began, and the
// caller that replaces a value learns when its last user is done.
package current

import "sync/atomic"

// A Value has a current value. It is safe for concurrent use.
type Value[T any] struct{ now atomic.Pointer[Held[T]] }

// Held is a value and the number of its users.
type Held[T any] struct {
	Value T
	users atomic.Int64 // counts the users, and one more while the value is current; 0: it was replaced and is unused
	idle  chan struct{}
}

// New returns a Value.
func New[T any](v T) *Value[T] {
	c := new(Value[T])
	c.now.Store(newHeld(v))
	return c
}

func newHeld[T any](v T) *Held[T] {
	h := &Held[T]{Value: v, idle: make(chan struct{})}
	h.users.Store(1)
	return h
}

// Load returns the current value without using it: it may be replaced and closed at any moment.
func (c *Value[T]) Load() T { return c.now.Load().Value }

// Acquire returns the current value for a user. The user calls Release.
func (c *Value[T]) Acquire() *Held[T] {
	for {
		if h := c.now.Load(); h.acquire() {
			return h
		}
	}
}

// acquire counts a user. It reports false if the value was replaced and is idle.
func (h *Held[T]) acquire() bool {
	for {
		n := h.users.Load()
		if n == 0 {
			return false
		}
		if h.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release ends a use.
func (h *Held[T]) Release() {
	if h.users.Add(-1) == 0 {
		close(h.idle)
	}
}

// Replace makes v the current value. Idle is closed when the former value has no users any more.
func (c *Value[T]) Replace(v T) (former T, idle <-chan struct{}) {
	h := c.now.Swap(newHeld(v))
	h.Release()
	return h.Value, h.idle
}
