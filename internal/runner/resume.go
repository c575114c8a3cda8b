package runner

import (
	"context"
	"errors"
	"strings"
	"time"

	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// Resume continues a decided run and returns how it ended. For a run that has already ended, it
// returns the recorded end. After an error of [ledger.Ledger.Claim] or [ledger.Ledger.Resume] the
// outcome is zero, unless the run stopped because its record could not be written.
func (r *Runner) Resume(ctx context.Context, id string, watch Watch) (Result, error) {
	result, err := r.resumeClaimed(ctx, id, watch)
	if errors.Is(err, ledger.ErrEnded) {
		return r.endedRun(ctx, id)
	}
	return result, err
}

// resumeClaimed does the same as Resume, but an ended run is an error.
func (r *Runner) resumeClaimed(ctx context.Context, id string, watch Watch) (Result, error) {
	if err := r.options.Ledger.Claim(ctx, id); err != nil {
		return Result{}, err
	}

	active := r.active.Acquire()
	defer active.Release()
	var ends []func()
	defer func() {
		for _, end := range ends {
			end()
		}
	}()

	result, err := r.options.Ledger.Resume(ctx, r.replayer, id, ledger.ResumeOptions{
		Ports: func(run *states.Run) *states.Live {
			handler, end := active.Value.runPorts(run, false)
			ends = append(ends, end)
			return handler
		},
		Bundle: active.Value.Bundle,
		Trace:  func() *states.TraceContext { return (*states.TraceContext)(r.options.Tracer.NewCall()) },
		Watch:  func(run *states.Run, rec states.Recorder) states.Recorder { return withWatch(run, rec, watch) },
	})

	var claim *ledger.ClaimError
	switch {
	case err == nil:
		r.measureOutcome(result.Outcome)
		active.Value.dropHeld(result.Run, result.Outcome)
	// Nothing was recorded.
	case result.Run == nil || errors.Is(err, ledger.ErrGivenUp) || errors.As(err, &claim):
		result.Outcome = states.Outcome{}
	default:
		result.Outcome = unrecordedOutcome(result.Run, err)
	}

	return result, err
}

// endedRun returns a run that has ended, executed again from its record.
func (r *Runner) endedRun(ctx context.Context, id string) (Result, error) {
	return r.options.Ledger.Ended(ctx, r.replayer, id)
}

// ErrWaiting means that a held run was not decided in time, or that another process owns it. The
// run stays in the ledger.
var ErrWaiting = errors.New("the run is not decided yet, or another process has it")

// Await waits for the decision about a held run, for the given time at most, and then resumes the
// run. If another process resumes it first, Await returns how it ended. The error is [ErrWaiting]
// if the time ran out.
func (r *Runner) Await(ctx context.Context, id string, wait time.Duration, watch Watch) (result Result, err error) {
	waitCtx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	_, err = ledger.Wait(waitCtx, r.options.Ledger, id, r.options.Ledger.Now)
	if err == nil {
		err = ledger.Poll(waitCtx, ledger.PollInterval, func() (bool, error) {
			var err error
			result, err = r.Resume(ctx, id, watch)
			if errors.Is(err, ledger.ErrTaken) { // the other process may end the run, or end itself
				return false, nil
			}
			return true, err
		})
	}
	if err != nil && waitCtx.Err() != nil && result.Run == nil {
		err = ErrWaiting
	}
	return result, err
}

// Approved returns the ids of the held runs that were approved and have not ended, oldest first.
func (r *Runner) Approved(ctx context.Context) ([]string, error) {
	return r.openRuns(ctx, ledger.Approved)
}

// Undecided returns the ids of the held runs that wait for a decision, oldest first.
func (r *Runner) Undecided(ctx context.Context) ([]string, error) {
	return r.openRuns(ctx, ledger.Pending)
}

func (r *Runner) openRuns(ctx context.Context, status ledger.Status) (ids []string, err error) {
	err = r.options.Ledger.View(ctx, func(look ledger.Reader) error {
		ids = nil
		for q, err := range look.Runs(ledger.Filter{Statuses: []ledger.Status{status}, Open: true}) {
			if err != nil {
				return err
			}
			if q.State == states.Pending {
				ids = append(ids, q.RunID)
			}
		}
		return nil
	})
	return ids, err
}

// Recover ends the runs whose process is gone, and denied and expired runs. It reports each run,
// except the denied and the expired.
func (r *Runner) Recover(ctx context.Context) {
	if r.options.Ledger == nil {
		return
	}
	ended, err := r.options.Ledger.Recover(ctx, r.replayer)
	if err != nil {
		r.reportf("left-over runs in the ledger cannot be read: %s", err)
	}
	for _, e := range ended {
		switch {
		case e.Err != nil:
			r.reportf("the run %s is left over and cannot be ended: %s", e.RunID, e.Err)
		case e.Outcome.Code != policy.CodeApprovalDenied && e.Outcome.Code != policy.CodeApprovalExpired:
			r.reportf("a left-over run ended as %s: %s", endedAs(e.Outcome), e.RunID)
		}
	}
}

func endedAs(o states.Outcome) string { return strings.TrimSpace(o.State + " " + string(o.Code)) }
