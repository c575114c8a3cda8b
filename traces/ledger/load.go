package ledger

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/states"
	"pgfsm/traces"
)

// A Record holds what the ledger recorded about one run. [traces.Replayer.Resume] derives the run's
// trace from it.
type Record struct {
	Header traces.Header
	Row    RunRow
	Inputs []traces.Input

	build string           // the version of the program that began the run
	held  int              // how many steps lead to the hold; 0: the run was never held
	last  canonical.Digest // hash of the last step before the hold, in the run's trace
	ended *states.Outcome  // nil: the run has not ended
	// The time of the last step; that of the request if there is none.
	lastAt string

	permit canonical.Digest // the permit of the call that was sent; empty: no call was sent
}

// Load returns the record of one run. It compares blobs with their digests, and does not check
// hashes of entries. The error is [ErrNotFound] if there is no such run.
func Load(r Reader, run string) (*Record, error) {
	request, err := r.Run(run)
	if err != nil {
		return nil, err
	}
	rec := &Record{Row: request}
	n := 0
	for e, err := range EventsOf(r, run) {
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", run, err)
		}
		n++
		if err := rec.addEvent(r, &e); err != nil {
			return nil, fmt.Errorf("run %s: %w", run, err)
		}
	}
	if n == 0 {
		return nil, fmt.Errorf("run %s: it has no event", run)
	}
	return rec, nil
}

// addEvent adds the content of an event to the record.
func (rec *Record) addEvent(r Reader, e *Event) error {
	p, err := e.decodePayload()
	if err != nil {
		return err
	}
	first, begins := p.(*requestCreated)
	if begins != (rec.Header.RunID == "") {
		return fmt.Errorf("%w: a run begins with %s, not with %s", ErrChanged, RequestCreated, e.Type)
	}

	if begins {
		if err := make(generations).resolve(r, &decodedEvent{*e, p}); err != nil {
			return err
		}
		content, err := readBlob(r, first.generation.Bundle, BlobBundle)
		if err != nil {
			return err
		}
		rec.Header, rec.build = first.traceHeader(e.RunID), first.generation.Build
		rec.Header.Bundle.Content = []byte(content)
		rec.lastAt = rec.Header.Request.At
	}

	if part, ok := p.(recording); ok {
		inputs, err := part.runRecord().resolveInputs(&rec.lastAt, func(d canonical.Digest) (string, error) {
			return readBlob(r, d, BlobValue)
		})
		if err != nil {
			return err
		}
		rec.Inputs = append(rec.Inputs, inputs...)
	}

	switch p := p.(type) {
	case *approvalRequested:
		rec.held, rec.last = len(rec.Inputs), p.Last
	case *proxySent:
		rec.permit = p.Permit
	case *callDelegated:
		rec.permit = p.Permit
	case *runEnded:
		rec.ended = &p.Outcome
	}

	return nil
}

// reexecute returns a run that executes its record again. A held run must get the trace that was
// recorded. Once a held run was resumed, another build may have resumed it and worded reasons
// differently. Then the head says whether the trace is the recorded one.
func (rec *Record) reexecute(p *traces.Replayer) (*traces.Resumption, error) {
	if rec.ended != nil || rec.Row.Sent != "" {
		return p.Reexecute(&rec.Header, rec.Inputs)
	}
	return p.Resume(&rec.Header, rec.Inputs, rec.held, rec.last)
}

// traceHeader returns the run's header, without the bundle's content.
func (p *requestCreated) traceHeader(run string) traces.Header {
	return traces.Header{
		Bundle:  traces.Bundle{Digest: p.generation.Bundle},
		Format:  p.generation.Format,
		Machine: p.generation.Machine,
		Request: p.wholeRequest(),
		RunID:   run,
	}
}

// readFirst returns the event that begins a run.
func (q *RunRow) readFirst(r Reader) (*requestCreated, error) {
	for e, err := range r.Entries(q.First) {
		if err != nil {
			return nil, err
		}
		decoded, err := e.decodeEvents()
		if err != nil {
			return nil, err
		}
		if len(decoded) > 0 && e.RunID == q.RunID {
			if first, ok := decoded[0].payload.(*requestCreated); ok {
				return first, nil
			}
		}
		break
	}
	return nil, fmt.Errorf("run %s: %w: entry %d does not begin it", q.RunID, ErrChanged, q.First)
}

// ReadArgs returns all arguments of the request's call in canonical form; nil if there is no call.
func (q *RunRow) ReadArgs(r Reader) (jsontext.Value, error) {
	switch q.Args {
	case "":
		return nil, nil
	case ArgsInEntry:
	default:
		return jsontext.Value(q.Args), nil
	}

	first, err := q.readFirst(r)
	if err != nil {
		return nil, err
	}
	if first.Call == nil {
		return nil, fmt.Errorf("run %s: %w: its first entry has no arguments", q.RunID, ErrChanged)
	}
	return first.Call.Args, nil
}
