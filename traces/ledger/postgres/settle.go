package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlrows"
)

// settleRetry is the time between attempts to settle.
const settleRetry = 100 * time.Millisecond

// settleCommit finds out whether the last transaction was committed. It is called if its COMMIT had
// no answer, or an answer with a warning: the wait for the standby may have been cancelled. settle
// returns nil if the transaction is durable.
//
// A read alone is not enough: the COMMIT may still be waiting, and become visible later. So settle
// takes the lock that the transaction holds until its end, and commits a write of its own. If this
// write is acknowledged without a warning, all earlier commits are as durable, and no other one can
// appear.
func (s *Store) settleCommit(cause error) error {
	if len(s.owners) == 0 {
		return fmt.Errorf("%w: %v", ledger.ErrUnsettled, cause)
	}

	ctx, stop := context.WithTimeoutCause(context.Background(), s.wait, errNoAnswer)
	defer stop()

	for {
		committed, err := s.wasCommitted(ctx)
		switch {
		case errors.Is(err, ledger.ErrLost):
			return err
		case errors.Is(err, ledger.ErrFenced):
			return fmt.Errorf("%w: %v; %v", ledger.ErrUnsettled, cause, err)
		case err != nil: // still unknown: ask again
		case committed:
			return nil
		default:
			return newUnavailable(fmt.Errorf("the transaction was rolled back: %v", cause))
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %v; %v", ledger.ErrUnsettled, cause, err)
		case <-s.closed:
			return fmt.Errorf("%w: %v; %w", ledger.ErrUnsettled, cause, sqlrows.ErrClosed)
		case <-time.After(settleRetry):
		}
	}
}

// wasCommitted reports whether the last transaction was committed. An error means that the answer
// is unknown.
func (s *Store) wasCommitted(ctx context.Context) (bool, error) {
	exec := &executor{ctx: ctx, pool: s.pool, wait: s.wait, begun: true}
	defer exec.release()
	ask := statement{query: "SELECT commits FROM replicas WHERE owner = ?", args: []any{s.owners[0]}}
	results, _, err := exec.sendBatch(ctx, append(s.lockStatements(), statement{query: touch}, ask)...)
	if err != nil {
		return false, err
	}
	if _, err := s.endOf(results[1]); err != nil {
		return false, err
	}

	delete(exec.connData(), noticed)
	ended, _, err := exec.sendBatch(ctx, statement{query: "COMMIT"})
	if err != nil {
		return false, err
	}
	if notice := exec.connData()[noticed]; notice != nil || ended[0].tag.String() != "COMMIT" {
		return false, fmt.Errorf("the transaction came to %s, with %v", ended[0].tag, notice)
	}

	exec.begun = false
	rows := results[3].rows
	if len(rows) != 1 { // the lease ran out long ago: this process was suspended
		return false, s.endWith(ledger.ErrFenced)
	}

	return rows[0].Int64() == s.commits, nil
}
