package sqlrows

import (
	"context"
	"errors"
)

// MaxReaders bounds the transactions of a store that read at the same time. Each has a connection.
const MaxReaders = 8

// Errors of every store.
var (
	ErrClosed = errors.New("the ledger is closed")
	// ErrUnrecorded means that a statement did not change the required number of rows.
	ErrUnrecorded = errors.New("a row was not recorded")
)

// AcquireSlot waits until there is room in a channel, and sends one value to it. If the store is
// closed, the error is [ErrClosed].
func AcquireSlot(ctx context.Context, room chan struct{}, closed <-chan struct{}) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case room <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-closed:
		return ErrClosed
	}

	// If several cases of a select are ready, it takes any of them.
	select {
	case <-closed:
		<-room
		return ErrClosed
	default:
		return nil
	}
}
