// Package current keeps a value that is replaced while it is in use. Each user keeps the value that
// was current when it began, and the caller that replaces a value learns when its last user is
// done.
package current

import "sync"

// A Value has a current value. It is safe for concurrent use.
type Value[T any] struct {
	mu  sync.RWMutex // held while a user is counted, so that nobody gets a value that was replaced
	now *Held[T]
}

// Held is a value in use.
type Held[T any] struct {
	Value T
	users sync.WaitGroup
}

// New returns a Value.
func New[T any](v T) *Value[T] { return &Value[T]{now: &Held[T]{Value: v}} }

// Load returns the current value without using it: it may be replaced and closed at any moment.
func (c *Value[T]) Load() T {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.now.Value
}

// Acquire returns the current value for a user. The user calls Release.
func (c *Value[T]) Acquire() *Held[T] {
	c.mu.RLock()
	defer c.mu.RUnlock()
	c.now.users.Add(1)
	return c.now
}

// Release ends a use.
func (h *Held[T]) Release() { h.users.Done() }

// Replace makes v the current value. Idle is closed when the former value has no users any more.
func (c *Value[T]) Replace(v T) (former T, idle <-chan struct{}) {
	c.mu.Lock()
	previous := c.now
	c.now = &Held[T]{Value: v}
	c.mu.Unlock()

	unused := make(chan struct{})
	go func() {
		defer close(unused)
		previous.users.Wait()
	}()
	return previous.Value, unused
}
