package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// A breaking store breaks each transaction, and counts them.
type breaking struct {
	Store
	begins  bool
	fails   error
	updates int
}

var errBreaks = errors.New("it breaks")

func (s *breaking) Update(_ context.Context, do func(Tx) error, _ ...func(Reader)) error {
	s.updates++
	if s.begins {
		if err := do(empty{}); err != nil {
			return err
		}
	}
	return s.fails
}

// empty is a transaction in which nothing is.
type empty struct{ Tx }

func (empty) End() (End, error)                 { return End{}, nil }
func (empty) DataVersion() (DataVersion, error) { return DataVersion{}, nil }

// TestOperationsOfABrokenTransaction: each is tried alone, for another one may be to blame. Where the transaction could not even begin, none is:
// any number of waiting operations wait only once for a store that another process holds, or that is away.
func TestOperationsOfABrokenTransaction(t *testing.T) {
	const operations = 3
	for _, tt := range []struct {
		name    string
		begins  bool
		fails   error
		updates int
	}{
		{"it-begins", true, errBreaks, 1 + operations},
		{"it-does-not-begin", false, errBreaks, 1},
		{"the-store-is-away", true, fmt.Errorf("%w: %w", ErrUnavailable, errBreaks), 1},
		{"it-may-have-been-committed", true, fmt.Errorf("%w: %w", ErrUnsettled, errBreaks), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &breaking{begins: tt.begins, fails: tt.fails}
			l := &Ledger{store: s, clock: time.Now}
			var all []*operation
			for range operations {
				all = append(all, &operation{do: func(*batch) error { return nil }, err: make(chan error, 1)})
			}
			l.commitOperations(slices.Clone(all))
			for i, o := range all {
				if err := <-o.err; !errors.Is(err, errBreaks) {
					t.Errorf("operation %d: %v, want %v", i, err, errBreaks)
				}
			}
			if s.updates != tt.updates {
				t.Errorf("%d transactions were begun, want %d", s.updates, tt.updates)
			}
		})
	}
}
