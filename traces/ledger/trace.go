package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"pgfsm/states"
	"pgfsm/traces"

	"github.com/google/renameio/v2"
)

// ErrUnfinished means that a run has no trace yet because it has not ended.
var ErrUnfinished = errors.New("the run is under way: it has a trace when it has ended or is held")

// Trace writes the trace of a run that has ended, or that is held: then its outcome is pending, also if it was decided
// meanwhile. Trace checks the chain of the steps. The error is [ErrNotFound] if there is no such run, and [ErrUnfinished] if it
// goes on.
func Trace(ctx context.Context, r Reader, run string, p *traces.Replayer) ([]byte, error) {
	h, steps, q, err := Load(r, run)
	if err != nil {
		return nil, err
	}
	if q.Ended == "" && q.State != states.Pending {
		return nil, fmt.Errorf("run %s stands at %s: %w", run, q.State, ErrUnfinished)
	}
	if err := traces.CheckChain(&h, steps); err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	var outcome *states.Outcome
	if q.Ended != "" {
		if outcome, err = loadOutcome(r, run); err != nil {
			return nil, fmt.Errorf("run %s: %w", run, err)
		}
	}
	doc, err := document(ctx, p, &h, steps, outcome)
	if err == nil && q.Ended != "" {
		var t *traces.Trace
		if t, err = traces.Read(doc); err == nil && t.Head != q.Head {
			err = traces.ErrHead
		}
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	return doc, nil
}

// WriteTraces writes the traces of all runs that have one into a folder. It returns how many it wrote, and how many runs have none yet.
func WriteTraces(ctx context.Context, r Reader, p *traces.Replayer, folder string) (written, open int, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return 0, 0, err
	}
	for q, err := range r.Requests(Filter{}) {
		if err != nil {
			return written, open, err
		}
		doc, err := Trace(ctx, r, q.RunID, p)
		if errors.Is(err, ErrUnfinished) {
			open++
			continue
		}
		if err == nil {
			err = renameio.WriteFile(filepath.Join(folder, traces.Name(q.RunID)), doc, 0o600, renameio.WithTempDir(folder))
		}
		if err != nil {
			return written, open, err
		}
		written++
	}
	return written, open, nil
}

// loadOutcome returns the outcome of a run.
func loadOutcome(r Reader, run string) (*states.Outcome, error) {
	for e, err := range r.EventsOf(run) {
		if err != nil {
			return nil, err
		}
		if e.Type != RunEnded {
			continue
		}
		p, err := readPayload(r, &e)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", e.Seq, err)
		}
		return &p.(*ended).Outcome, nil
	}
	return nil, fmt.Errorf("it has no event %s", RunEnded)
}

// document writes a trace. Without an outcome it executes the run again up to the hold, to get the pending outcome.
func document(ctx context.Context, p *traces.Replayer, h *traces.Header, steps []traces.Step, o *states.Outcome) ([]byte, error) {
	if o == nil {
		again, err := p.Resume(h, steps)
		if err != nil {
			return nil, err
		}
		waits, err := again.Advance(ctx, nobody{}, nobody{})
		if err != nil {
			return nil, err
		}
		o = &waits
	}
	return traces.Document(h, steps, *o), nil
}

// nobody is the door and the recorder after the end of a record that is only read.
type nobody struct{}

// Do is [states.Door.Do].
func (nobody) Do(context.Context, states.Command) (states.Event, error) { return nil, states.ErrParked }

// Append is [states.Recorder.Append]. It is not expected: the run does not go on.
func (nobody) Append(context.Context, states.Step) error { return ErrUnfinished }
