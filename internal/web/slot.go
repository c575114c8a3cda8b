package web

import "context"

// A Slot is held by one request at a time. It bounds work that many requests together must not do.
type Slot chan struct{}

// NewSlot returns a free slot.
func NewSlot() Slot { return make(Slot, 1) }

// Acquire waits until the slot is free, or ctx is done.
func (s Slot) Acquire(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Release frees the slot.
func (s Slot) Release() { <-s }
