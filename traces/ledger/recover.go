package ledger

import (
	"context"
	"errors"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

// Recovered is the result for one left-over run.
type Recovered struct {
	RunID   string
	Outcome states.Outcome
	Head    canonical.Digest // of its trace
	Err     error            // why it could not be ended; it stays as it is
}

// Recover ends every run that can be ended without servers and that no process works on: runs whose process is gone, with the
// call in flight (failed, indeterminate: it is never called again) or before (failed, interrupted); denied runs; and expired
// runs. It does not touch pending or approved runs, and those of live processes. Gone is also a process that could not renew its
// lease in time: the claim of its run ends the lease, so that it records nothing more. Its call may still be made.
func (l *Ledger) Recover(ctx context.Context, p *traces.Replayer) ([]Recovered, error) {
	var found []string
	err := l.View(ctx, func(r Reader) error {
		end, err := r.End()
		if err != nil {
			return err
		}
		now, err := l.timeAfter(end.At)
		if err != nil {
			return err
		}
		lives := make(map[string]bool) // by owner: many runs have the same
		for q, err := range r.Requests(Filter{Open: true}) {
			if err != nil {
				return err
			}
			if l.working(q.RunID) || overdue(&q, now) != nil {
				continue
			}
			live, known := lives[q.Owner]
			if !known {
				free, err := l.free(&q, func(owner string) (bool, error) { return l.store.OwnerGone(ctx, owner) })
				live = err == nil && !free // an error about one owner is reported with its runs: RecoverRun tries again
				lives[q.Owner] = live
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
	var all []Recovered
	for _, id := range found {
		r, err := l.RecoverRun(ctx, p, id)
		switch {
		case errors.Is(err, ErrTaken), errors.Is(err, ErrEnded), errors.Is(err, ErrUndecided):
			continue // another process was faster
		case ctx.Err() != nil:
			return all, context.Cause(ctx)
		}
		all = append(all, r)
	}
	return all, nil
}

// RecoverRun is Recover for one run. The error, which is also in the result, is a [*ClaimError] if the run must not be
// recovered.
func (l *Ledger) RecoverRun(ctx context.Context, p *traces.Replayer, run string) (Recovered, error) {
	out := Recovered{RunID: run}
	if out.Err = l.claim(ctx, run, overdue); out.Err != nil {
		return out, out.Err
	}
	defer l.endWork(run)
	o, err := l.reopen(ctx, p, run)
	if out.Err = err; err != nil {
		return out, err
	}
	if o.changed != nil {
		got, err := o.endChanged(context.WithoutCancel(ctx), p)
		return Recovered{run, got.Outcome, got.Head, err}, err
	}
	handler := states.EffectHandler(gone{})
	if o.request.Binding != "" && o.request.Sent == "" { // held and not sent: it ends only if it was denied or has expired
		handler = &guard{l: l, live: &states.Live{Approver: votedAlready{o.decided}}, caller: context.WithoutCancel(ctx), o: &o}
	}
	if out.Outcome, out.Err = o.again.Advance(context.WithoutCancel(ctx), handler, o.rec); out.Err != nil {
		return out, out.Err
	}
	out.Head, out.Err = o.rec.Finish(ctx, out.Outcome)
	return out, out.Err
}

// overdue reports why a run cannot be ended without servers. It does not check the owner.
func overdue(q *Request, now string) error {
	if q.Binding != "" && q.Sent == "" && (q.Status == Pending || q.Status == Approved) && policy.IsBefore(now, q.Expires) {
		return ErrUndecided // or decided, and to be resumed by a process with servers
	}
	return nil
}

// gone is the handler after the last recorded step of a run whose process is gone.
type gone struct{}

func (gone) Do(context.Context, states.Command) (states.Event, error) {
	return states.Interruption(policy.CodeInterrupted, "The process that owned the run ended, or could not renew its lease."), nil
}
