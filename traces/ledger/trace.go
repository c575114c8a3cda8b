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

// Trace derives the trace of a run that has ended, or that is held: then its outcome is pending, also if it was decided
// meanwhile. The error is [ErrNotFound] if there is no such run, [ErrUnfinished] if it goes on, and a [*traces.DivergenceError] if the
// machine does not lead to the hash and the head that are recorded.
func Trace(ctx context.Context, r Reader, run string, p *traces.Replayer) ([]byte, error) {
	rec, err := Load(r, run)
	if err != nil {
		return nil, err
	}
	q := &rec.Request
	if q.Ended == "" && q.State != states.Pending {
		return nil, fmt.Errorf("run %s stands at %s: %w", run, q.State, ErrUnfinished)
	}
	doc, err := rec.document(ctx, p)
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

// document derives a run's trace.
func (rec *Record) document(ctx context.Context, p *traces.Replayer) ([]byte, error) {
	again, err := rec.again(p)
	if err != nil {
		return nil, err
	}
	outcome, err := again.Advance(ctx, nobody{}, nobody{})
	if err != nil {
		return nil, err
	}
	if rec.ended != nil && again.Head(outcome) != rec.Request.Head {
		return nil, traces.ErrHead
	}
	return traces.Document(&rec.Header, again.Steps(), outcome), nil
}

// nobody is the door and the recorder after the end of a record that is only read.
type nobody struct{}

// Do is [states.Door.Do].
func (nobody) Do(context.Context, states.Command) (states.Event, error) { return nil, states.ErrParked }

// Append is [states.Recorder.Append]. It is not expected: the run does not go on.
func (nobody) Append(context.Context, states.Step) error { return ErrUnfinished }
