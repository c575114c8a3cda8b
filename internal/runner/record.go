package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

// A record keeps the steps of one run. Finish ends it; Abandon leaves it unfinished, for recovery.
type record interface {
	states.Recorder
	Effects(states.EffectHandler) states.EffectHandler // wraps the run's handler
	Finish(context.Context, states.Outcome) (head canonical.Digest, err error)
	Abandon()
}

// Advance records a new run and lets the machine move it until it ends or is held. An evaluation
// passes a handler that reaches no server.
func (r *Runner) Advance(ctx context.Context, run *states.Run, handler states.EffectHandler,
	watch Watch) (Result, error) {
	return r.advanceRecorded(ctx, run, r.beginRecord(run), handler, watch)
}

// advanceRecorded is Advance for a run whose record has begun.
func (r *Runner) advanceRecorded(ctx context.Context, run *states.Run, rec record, handler states.EffectHandler,
	watch Watch) (Result, error) {
	outcome, err := r.machine.Advance(ctx, run, rec.Effects(handler), withWatch(run, rec, watch))
	if err != nil {
		return abandonRun(run, rec, err)
	}
	head, err := rec.Finish(ctx, outcome)
	if err != nil {
		return abandonRun(run, rec, err)
	}

	return Result{Run: run, Outcome: outcome, Head: head}, nil
}

// abandonRun gives up a run whose record cannot be written.
func abandonRun(run *states.Run, rec record, cause error) (Result, error) {
	rec.Abandon()
	return Result{Run: run, Outcome: unrecordedOutcome(run, cause)}, cause
}

// unrecordedOutcome returns the outcome of a run whose record cannot be written. The run may have
// made its call.
func unrecordedOutcome(run *states.Run, cause error) states.Outcome {
	o := run.Outcome()
	o.Type, o.Code, o.Gate, o.Reason = states.TypeFailed, policy.CodeRecordFailed, policy.GateRun, cause.Error()
	return o
}

// beginCallRecord begins the record of an agent's call. If attaches is true, the record of a call that
// repeats a held one fails with a [*ledger.AttachError].
func (r *Runner) beginCallRecord(run *states.Run, requester ledger.Caller, attaches bool) record {
	if l := r.options.Ledger; l != nil {
		return ledgerRecord{l.BeginCall(traces.NewHeader(r.machine, run), run, requester, attaches)}
	}
	return noRecord{}
}

// beginRecord begins the record of a run.
func (r *Runner) beginRecord(run *states.Run) record {
	if l := r.options.Ledger; l != nil {
		return ledgerRecord{l.Begin(traces.NewHeader(r.machine, run), run)}
	}
	return noRecord{}
}

// A ledgerRecord is a run in the ledger.
type ledgerRecord struct{ *ledger.RunRecorder }

// Finish ends the record. The record of a run that waits is complete, too: the run stays open, and no
// process owns it.
func (l ledgerRecord) Finish(ctx context.Context, o states.Outcome) (canonical.Digest, error) {
	if o.Waits() {
		return l.Head(o), nil
	}
	return l.RunRecorder.Finish(ctx, o)
}

// A noRecord drops everything.
type noRecord struct{ states.DiscardRecorder }

func (noRecord) Effects(d states.EffectHandler) states.EffectHandler              { return d }
func (noRecord) Finish(context.Context, states.Outcome) (canonical.Digest, error) { return "", nil }
func (noRecord) Abandon()                                                         {}

// withWatch returns a recorder that calls watch after rec.
func withWatch(run *states.Run, rec states.Recorder, watch Watch) states.Recorder {
	if watch == nil {
		return rec
	}
	return watchedRecorder{rec, run, watch}
}

type watchedRecorder struct {
	states.Recorder
	run   *states.Run
	watch Watch
}

// Append records the step, and then tells the watcher.
func (w watchedRecorder) Append(ctx context.Context, s states.Step) error {
	if err := w.Recorder.Append(ctx, s); err != nil {
		return err
	}
	w.watch(w.run, s)
	return nil
}

// writeFailureTime bounds how long a failed write makes the gateway unready if no call follows: a
// load balancer sends no calls to an unready gateway.
const writeFailureTime = 10 * time.Second

// A writeFailure is a record that could not be written.
type writeFailure struct {
	at  time.Time
	why error
}

// noteWriteFailure records a failed write, ignoring cancelled requests and those that the ledger
// refused.
func (r *Runner) noteWriteFailure(ctx context.Context, why error) {
	var refused *ledger.Refusal
	if ctx.Err() == nil && !errors.As(why, &refused) {
		r.writeFailed.Store(&writeFailure{time.Now(), why})
	}
}

// Ready returns an error if the last record could not be written: then agents' calls are refused.
func (r *Runner) Ready() error {
	f := r.writeFailed.Load()
	if f == nil || time.Since(f.at) >= writeFailureTime {
		return nil
	}
	return fmt.Errorf("calls are refused, for they cannot be recorded: %w", f.why)
}
