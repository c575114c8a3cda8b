package ledger

import (
	"context"
	"errors"
	"fmt"

	"pgfsm/policy"
)

// Reasons why a run cannot be claimed or delivered. They are wrapped in a [ClaimError].
var (
	ErrTaken     = errors.New("another process has the run")
	ErrEnded     = errors.New("the run has ended")
	ErrUndecided = errors.New("the run is not decided yet")
	ErrTooLate   = errors.New("the approval expired before the call left")
	ErrAskAgain  = errors.New("the client makes the call itself: it has to ask again")
	ErrStarted   = errors.New("the run does not wait: it was never held, or its call was sent")
)

// A ClaimError holds the state of a run that cannot be claimed.
type ClaimError struct {
	Row RunRow
	Err error // one of the errors above, or ErrOpen
}

func (e *ClaimError) Error() string {
	q := &e.Row
	switch {
	case errors.Is(e.Err, ErrTaken) && q.Owner != "":
		return fmt.Sprintf("run %s: %v: owner %s, since %s; it stands at %s, %s; pgfsm resume %s resumes it when that process has ended",
			q.RunID, e.Err, q.Owner, q.Updated, q.State, q.Status, q.RunID)
	case errors.Is(e.Err, ErrTaken):
		return fmt.Sprintf("run %s: %v, or had it: it stands at %s, %s, since %s; pgfsm ledger show %s shows its progress",
			q.RunID, e.Err, q.State, q.Status, q.Updated, q.RunID)
	case errors.Is(e.Err, ErrEnded):
		return fmt.Sprintf("run %s: %v: %s at %s; a call is never made again", q.RunID, e.Err, q.Status, q.Ended)
	case errors.Is(e.Err, ErrUndecided):
		return fmt.Sprintf("run %s: %v: %d of %d have approved; it expires at %s (pgfsm approvals show %s)",
			q.RunID, e.Err, q.Agreed, q.Quorum, q.Expires, q.RunID)
	case errors.Is(e.Err, ErrOpen):
		return fmt.Sprintf("run %s: %v; it is %s (pgfsm approvals show %s)", q.RunID, e.Err, q.Status, q.RunID)
	case errors.Is(e.Err, ErrTooLate):
		return fmt.Sprintf("run %s: %v: at %s; nothing was called: ask again", q.RunID, e.Err, q.Expires)
	case errors.Is(e.Err, ErrAskAgain):
		return fmt.Sprintf("run %s: %v", q.RunID, e.Err)
	case errors.Is(e.Err, ErrRevoked):
		return fmt.Sprintf("run %s: %v; nothing was called: ask again", q.RunID, e.Err)
	}
	return fmt.Sprintf("run %s: %v; it stands at %s, %s; there is nothing to resume; pgfsm ledger show %s shows the run",
		q.RunID, e.Err, q.State, q.Status, q.RunID)
}

func (e *ClaimError) Unwrap() error { return e.Err }

// Claim makes this process the owner of a held run that is decided or has expired. Of several
// callers, in any number of processes, one succeeds; the others get a [*ClaimError]. The run
// belongs to this process until the run ends, the process is gone, or the process gives up the
// work. [Ledger.Resume] continues the run.
func (l *Ledger) Claim(ctx context.Context, run string) error {
	return l.claimRun(ctx, run, func(q *RunRow, now string) error {
		if q.Delegates() && q.Status == Approved && policy.IsBefore(now, q.Expires) {
			return ErrAskAgain
		}
		return checkClaimable(q, now)
	})
}

// ClaimAsked is Claim for an approved run whose client makes the call itself and has asked again.
func (l *Ledger) ClaimAsked(ctx context.Context, run string) error {
	return l.claimRun(ctx, run, checkClaimable)
}

// checkClaimable returns why a held run cannot be claimed; nil if it can be.
func checkClaimable(q *RunRow, now string) error {
	switch {
	case q.Binding == "" || q.Sent != "":
		return ErrStarted
	case q.Status == Pending && policy.IsBefore(now, q.Expires):
		return ErrUndecided
	}
	return nil
}

// claimRun makes this process the owner of a run that has none, unless check returns an error.
func (l *Ledger) claimRun(ctx context.Context, run string, check func(*RunRow, string) error) error {
	if !l.beginWork(run) {
		return fmt.Errorf("run %s: %w: this one, at this moment; wait for it, or for its process to end", run, ErrTaken)
	}

	err := l.commit(ctx, func(b *batch) error {
		q, err := b.Run(run)
		if err != nil {
			return err
		}
		if q.Ended != "" {
			return &ClaimError{Row: q, Err: ErrEnded}
		}
		isFree, err := l.isFree(&q, b.OwnerGone)
		if err != nil {
			return err
		}
		if !isFree {
			return &ClaimError{Row: q, Err: ErrTaken}
		}
		if err := check(&q, b.now); err != nil {
			return &ClaimError{Row: q, Err: err}
		}
		if err := b.addEvent(&q, run, l.owner, &runClaimed{}); err != nil {
			return err
		}
		return b.PutRun(q)
	})
	if err != nil {
		l.endWork(run)
	}

	return err
}

// isFree reports whether no process works on a run. A run that carries this process's id is free:
// beginWork has found that no goroutine of this process works on it any more.
func (l *Ledger) isFree(q *RunRow, ownerGone func(owner string) (bool, error)) (bool, error) {
	if q.Owner == "" || q.Owner == l.owner {
		return true, nil
	}
	isGone, err := ownerGone(q.Owner)
	if err != nil {
		return false, fmt.Errorf("whether the owner of run %s still lives cannot be told: %w", q.RunID, err)
	}
	return isGone, nil
}

// beginWork notes that a goroutine of this process works on a run. It returns false if another
// goroutine already does.
func (l *Ledger) beginWork(run string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy[run] {
		return false
	}
	l.busy[run] = true
	return true
}

// endWork notes that no goroutine of this process works on a run any more.
func (l *Ledger) endWork(run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.busy, run)
}

// isWorking reports whether a goroutine of this process works on a run.
func (l *Ledger) isWorking(run string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busy[run]
}
