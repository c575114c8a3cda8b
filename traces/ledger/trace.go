package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"pgfsm/internal/safefile"
	"pgfsm/states"
	"pgfsm/traces"
)

// ErrUnfinished means that a run has no trace yet, because it is under way.
var ErrUnfinished = errors.New("the run is under way: it has a trace when it has ended or is held")

// Trace derives the trace of a run that has ended or is held. The outcome of a held run is pending,
// even if the run was decided meanwhile. The error is [ErrNotFound] if there is no such run, and
// [ErrUnfinished] if the run is under way. It is a [*traces.DivergenceError] if the machine does
// not lead to the recorded hash and head.
func Trace(ctx context.Context, r Reader, run string, p *traces.Replayer) ([]byte, error) {
	rec, err := Load(r, run)
	if err != nil {
		return nil, err
	}
	q := &rec.Row
	if rec.underWay() {
		return nil, fmt.Errorf("run %s stands at %s: %w", run, q.State, ErrUnfinished)
	}
	doc, err := rec.traceDocument(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	return doc, nil
}

// WriteTraces writes the traces of all runs that have one into a folder. It returns how many traces
// it wrote, and how many runs have none yet.
func WriteTraces(ctx context.Context, r Reader, p *traces.Replayer, folder string) (written, open int, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return 0, 0, err
	}
	for q, err := range r.Runs(Filter{}) {
		if err != nil {
			return written, open, err
		}
		doc, err := Trace(ctx, r, q.RunID, p)
		if errors.Is(err, ErrUnfinished) {
			open++
			continue
		}
		if err != nil {
			return written, open, err
		}
		if err := safefile.Write(filepath.Join(folder, traces.Name(q.RunID)), doc, 0o600); err != nil {
			return written, open, err
		}
		written++
	}
	return written, open, nil
}

// Steps returns the recorded steps of a run. underWay reports that the run has neither ended nor is
// held. Its process has then recorded the steps up to the reading of earlier calls, or up to the
// call; the next commit records the steps after them. The errors are those of [Trace], without
// [ErrUnfinished].
func Steps(ctx context.Context, r Reader, run string, p *traces.Replayer) (steps []traces.Step, underWay bool,
	err error) {
	rec, err := Load(r, run)
	if err != nil {
		return nil, false, err
	}
	resumption, _, err := rec.deriveTrace(ctx, p)
	if err != nil {
		return nil, false, fmt.Errorf("run %s: %w", run, err)
	}
	return resumption.Steps(), rec.underWay(), nil
}

// underWay reports whether the run has neither ended nor is held.
func (rec *Record) underWay() bool {
	return rec.Row.Ended == "" && !rec.Row.parked()
}

// traceDocument derives a run's trace.
func (rec *Record) traceDocument(ctx context.Context, p *traces.Replayer) ([]byte, error) {
	resumption, outcome, err := rec.deriveTrace(ctx, p)
	if err != nil {
		return nil, err
	}
	return traces.Document(&rec.Header, resumption.Steps(), outcome), nil
}

// deriveTrace executes a record up to its end, and compares the result with the recorded head and
// permit.
func (rec *Record) deriveTrace(ctx context.Context, p *traces.Replayer) (
	resumption *traces.Resumption, o states.Outcome, err error) {
	if resumption, err = rec.reexecute(p); err != nil {
		return nil, o, err
	}
	if o, err = resumption.Advance(ctx, readOnly{}, readOnly{}); err != nil {
		return nil, o, err
	}
	if rec.ended != nil && resumption.Head(o) != rec.Row.Head {
		return nil, o, traces.ErrHead
	}
	if rec.permit != "" && resumption.Run.Facts().ConsumedPermit() != rec.permit {
		return nil, o, fmt.Errorf("%w: another permit comes out than the recorded one", ErrChanged)
	}
	return resumption, o, nil
}

// readOnly is the handler and the recorder for a record that is only read, not continued.
type readOnly struct{}

// Do is [states.EffectHandler.Do].
func (readOnly) Do(context.Context, states.Command) (states.Event, error) {
	return nil, states.ErrParked
}

// Append is [states.Recorder.Append]. It is not expected, because the run does not continue.
func (readOnly) Append(context.Context, states.Step) error { return ErrUnfinished }
