package ledger

import (
	"errors"
	"fmt"

	"pgfsm/traces"
)

// A Reexecution counts the runs that this build executed again. It compares decisions, and not the
// wording of reasons. For each step it compares the trigger and the target, and for the outcome the
// gate, code and effect. It also compares the events that follow from the run: the call, risk, decisions,
// the hold, the permit and the result. A difference is no proof of tampering: another build may decide
// otherwise.
type Reexecution struct {
	Same int64 `json:"same"` // this build decides as recorded
	// Runs in Same with another trace, such as another wording: [Trace] cannot derive the recorded
	// one.
	OtherTrace int64 `json:"other_trace"`
	Otherwise  int64 `json:"otherwise"` // this build decides otherwise
	// This build cannot read the run's bundle or its inputs.
	Unjudged int64 `json:"unjudged"`
	// The first run that this build decides otherwise.
	FirstOtherwise  *Fault `json:"first_otherwise,omitempty"`
	FirstUnjudged   *Fault `json:"first_unjudged,omitempty"`    // the first run that this build cannot judge
	FirstOtherTrace *Fault `json:"first_other_trace,omitempty"` // the first run with another trace
}

// OK reports whether this build decides every run as recorded, with the recorded head.
func (r *Reexecution) OK() bool { return r.Otherwise == 0 && r.Unjudged == 0 && r.OtherTrace == 0 }

// reexecute executes the run again, if a Replayer is set and the run has ended, is held, or waits for a report.
func (s *runVerifier) reexecute() error {
	p := s.verifier.o.Replayer
	if p == nil || s.ended == nil && !s.row.parked() && (s.asked == nil || s.row.Sent != "") {
		return nil
	}

	run := s.row.RunID
	rec := &Record{Header: s.first.traceHeader(run), Row: s.row, Inputs: s.inputs}
	content, err := s.verifier.blobs.checkedText(rec.Header.Bundle.Digest, BlobBundle, "requests", run)
	if err != nil {
		return err
	}

	rec.Header.Bundle.Content = []byte(content)
	deep := &s.verifier.report.Deep
	sameTrace, err := s.judgeRecord(rec, p)

	switch {
	case s.verifier.ctx.Err() != nil:
		return s.verifier.ctx.Err()
	case errors.Is(err, errUnjudged):
		deep.Unjudged++
		if deep.FirstUnjudged == nil {
			deep.FirstUnjudged = newFault("requests", run, err.Error())
		}
	case err != nil:
		deep.Otherwise++
		if deep.FirstOtherwise == nil {
			deep.FirstOtherwise = newFault("requests", run, "it would be decided otherwise: "+err.Error())
		}
	default:
		deep.Same++
		if !sameTrace {
			deep.OtherTrace++
		}
		if !sameTrace && deep.FirstOtherTrace == nil {
			deep.FirstOtherTrace = newFault("requests", run, "its head, or the hash of the step that held it, is that of another trace")
		}
	}

	return nil
}

// errUnjudged means that this build cannot read the bundle or the inputs of a run.
var errUnjudged = errors.New("this build cannot judge it")

// judgeRecord executes a record again, and reports whether the result is the recorded trace. The
// error wraps errUnjudged, or says what this build decides otherwise.
func (s *runVerifier) judgeRecord(rec *Record, p *traces.Replayer) (sameTrace bool, err error) {
	if rec.Header.Format != traces.Format {
		return false, fmt.Errorf("%w: its format is %q", errUnjudged, rec.Header.Format)
	}
	resumption, err := p.Reexecute(&rec.Header, rec.Inputs)
	if err != nil {
		return false, fmt.Errorf("%w: %w", errUnjudged, err)
	}
	outcome, err := resumption.Advance(s.verifier.ctx, readOnly{}, readOnly{})
	if diverged := new(traces.DivergenceError); errors.As(err, &diverged) && diverged.What == "event" {
		return false, fmt.Errorf("%w: %w", errUnjudged, diverged)
	}
	if err != nil {
		return false, err
	}

	// The steps must make a trace that can be read, and agree with the events.
	steps := resumption.Steps()
	if _, err := traces.Read(traces.Document(&rec.Header, steps, outcome)); err != nil {
		return false, fmt.Errorf("%w: %w", errUnjudged, err)
	}
	if err := s.compareEvents(resumption); err != nil {
		return false, err
	}
	if err := s.findOriginsAgain(resumption.Run); err != nil {
		return false, err
	}

	sameTrace = s.asked == nil || steps[s.heldAt-1].Hash == s.asked.Last
	if s.ended == nil {
		return sameTrace, nil
	}
	if sameTrace = sameTrace && resumption.Head(outcome) == s.ended.Head; sameTrace && outcome != s.ended.Outcome {
		return false, fmt.Errorf("the outcome is %+v, and %+v is recorded", outcome, s.ended.Outcome)
	}

	// Another build may word reasons and notes differently.
	recorded, replayed := s.ended.Outcome, outcome
	recorded.Note, recorded.Reason, replayed.Note, replayed.Reason = "", "", "", ""
	if recorded != replayed {
		return false, fmt.Errorf("the outcome is %+v, and %+v is recorded", replayed, recorded)
	}

	return sameTrace, nil
}
