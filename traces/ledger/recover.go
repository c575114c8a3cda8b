package ledger

import (
	"context"
	"errors"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

// Recovered is the result for one run that its process left.
type Recovered struct {
	RunID   string
	Outcome states.Outcome
	Head    canonical.Digest // the head of the trace
	Err     error            // why the run could not be ended; it stays as it is
}

// Recover ends every run that no process works on and that can be ended without servers. These are
// denied runs, expired runs, and runs whose process is gone. If such a process left a call in
// flight, the run fails as indeterminate, and the call is never repeated; otherwise the run fails
// as interrupted. Recover does not touch pending or approved runs, or runs of live processes. A
// process that did not renew its lease in time also counts as gone. Claiming its run ends the
// lease, so that the process records nothing more. Its call may still be made.
func (l *Ledger) Recover(ctx context.Context, p *traces.Replayer) ([]Recovered, error) {
	var found []string
	err := l.View(ctx, func(r Reader) error {
		now, err := l.readTime(r)
		if err != nil {
			return err
		}

		liveOwners := make(map[string]bool) // by owner, because many runs have the same one
		for q, err := range r.Runs(Filter{Open: true}) {
			if err != nil {
				return err
			}
			if l.isWorking(q.RunID) || checkEndable(&q, now) != nil {
				continue
			}
			live, seen := liveOwners[q.Owner]
			if !seen {
				isFree, err := l.isFree(&q, func(owner string) (bool, error) { return l.store.OwnerGone(ctx, owner) })
				// RecoverRun asks again and reports an error with each run of the owner.
				live = err == nil && !isFree
				liveOwners[q.Owner] = live
			}
			if !live {
				found = append(found, q.RunID)
			}
		}

		return nil
	})
	if err != nil {
		return nil, err
	}

	// Each run is claimed and ended in transactions of its own.
	var recovered []Recovered
	for _, id := range found {
		r, err := l.RecoverRun(ctx, p, id)
		switch {
		case errors.Is(err, ErrTaken), errors.Is(err, ErrEnded), errors.Is(err, ErrUndecided):
			continue // another process was faster
		case ctx.Err() != nil:
			return recovered, context.Cause(ctx)
		}
		recovered = append(recovered, r)
	}

	return recovered, nil
}

// RecoverRun is Recover for one run. The error, which is also in the result, is a [*ClaimError] if
// the run must not be recovered.
func (l *Ledger) RecoverRun(ctx context.Context, p *traces.Replayer, run string) (Recovered, error) {
	result := Recovered{RunID: run}
	if result.Err = l.claimRun(ctx, run, checkEndable); result.Err != nil {
		return result, result.Err
	}
	defer l.endWork(run)
	opened, err := l.reopenRun(ctx, p, run)
	if result.Err = err; err != nil {
		return result, err
	}
	if opened.changed != nil {
		resumed, err := opened.endChanged(context.WithoutCancel(ctx), p)
		return Recovered{run, resumed.Outcome, resumed.Head, err}, err
	}

	handler := states.EffectHandler(deadProcess{})
	// Held and not sent: the run ends only if it was denied or has expired.
	if opened.row.Binding != "" && opened.row.Sent == "" {
		handler = &guard{
			ledger: l,
			live:   &states.Live{Approver: recordedApprover{opened.decision}},
			caller: context.WithoutCancel(ctx),
			opened: &opened,
		}
	}

	workCtx := context.WithoutCancel(ctx)
	result.Outcome, result.Err = opened.resumption.Advance(workCtx, handler, opened.recorder)
	if result.Err != nil {
		return result, result.Err
	}

	result.Head, result.Err = opened.recorder.Finish(ctx, result.Outcome)
	return result, result.Err
}

// checkEndable returns why a run cannot be ended without servers; nil if it can be. It does not
// check the owner.
func checkEndable(q *RunRow, now string) error {
	if q.State == states.Delegated {
		return ErrUndecided // the client makes the call itself, and any process records its report
	}
	if q.Binding != "" && q.Sent == "" && (q.Status == Pending || q.Status == Approved) &&
		policy.IsBefore(now, q.Expires) {
		return ErrUndecided // or the run is approved, and a process with servers must resume it
	}
	return nil
}

// deadProcess is the handler of a run whose process is gone. It handles the effect after the last
// recorded step.
type deadProcess struct{}

func (deadProcess) Do(context.Context, states.Command) (states.Event, error) {
	return states.Interruption(policy.CodeInterrupted,
		"The process that owned the run ended, or could not renew its lease."), nil
}
