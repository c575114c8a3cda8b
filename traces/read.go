package traces

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/states"
)

// MaxTraceBytes bounds the size of a trace that is read: twice a result of the largest size with
// every byte escaped.
const MaxTraceBytes = 1 << 30

// ErrTampered is wrapped by every [TamperError].
var ErrTampered = errors.New("the trace is not as it was written")

// TamperError names the first place of a trace that breaks the chain.
type TamperError struct {
	Place string // "header", "step" or "outcome" (the outcome or the head)
	Seq   int    // the step's number, where Place is "step"
	What  string
}

func (e *TamperError) Error() string {
	if e.Place == "step" {
		return fmt.Sprintf("%v: step %d: %s", ErrTampered, e.Seq, e.What)
	}
	return fmt.Sprintf("%v: %s: %s", ErrTampered, e.Place, e.What)
}

// Unwrap returns [ErrTampered].
func (e *TamperError) Unwrap() error { return ErrTampered }

// Trace is a trace whose chain was checked.
type Trace struct {
	Header  Header
	Steps   []Step
	Outcome states.Outcome
	Head    canonical.Digest

	outcome jsontext.Value // canonical
}

// Read reads a finished trace and checks its chain. The error is a [*TamperError] if the document
// is a trace that was changed; otherwise it says why the document is not a trace.
func Read(doc []byte) (*Trace, error) {
	d, err := parseDocument(doc)
	if err != nil {
		return nil, err
	}
	t := &Trace{Header: Header{Format: Format}}
	if err := decodeStrictly(d.Bundle, &t.Header.Bundle); err != nil {
		return nil, &TamperError{Place: "header", What: "bundle: " + err.Error()}
	}
	if err := t.Header.Bundle.checkDigest(); err != nil {
		return nil, &TamperError{Place: "header", What: "bundle: " + err.Error()}
	}

	headerErr := t.Header.readMembers(d)
	last, err := t.readChain(d.Steps)
	if err != nil {
		return nil, err
	}
	if headerErr != nil {
		return nil, &TamperError{Place: "header", What: headerErr.Error()}
	}
	if err := t.checkEnds(last, d); err != nil {
		return nil, err
	}

	return t, nil
}

// readMembers decodes the small members of a header. A member that does not decode changes the
// header's digest, so the chain names the header.
func (h *Header) readMembers(d *document) error {
	for _, m := range []struct {
		name  string
		value jsontext.Value
		to    any
	}{{"machine", d.Machine, &h.Machine}, {"request", d.Request, &h.Request}, {"run_id", d.RunID, &h.RunID}} {
		if err := decodeStrictly(m.value, m.to); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return checkRunID(h.RunID)
}

// readChain checks the chain of the steps, from the header's digest on, and returns the last hash.
func (t *Trace) readChain(steps []jsontext.Value) (canonical.Digest, error) {
	if len(steps) == 0 {
		return "", &TamperError{Place: "step", Seq: 0, What: "there is no step"}
	}
	prev := t.Header.chainDigest()
	t.Steps = make([]Step, len(steps))
	for i := range steps {
		step := &t.Steps[i]
		if err := step.readLine(steps[i], i); err != nil {
			return "", err
		}
		if step.Prev != prev {
			if i == 0 {
				return "", &TamperError{Place: "header", What: "step 0 was chained to another header"}
			}
			return "", &TamperError{Place: "step", Seq: i, What: "it was chained to another step"}
		}
		prev = step.Hash
	}
	return prev, nil
}

// readLine decodes one step and checks its hash.
func (s *Step) readLine(raw []byte, seq int) error {
	tampered := func(format string, args ...any) error {
		return &TamperError{Place: "step", Seq: seq, What: fmt.Sprintf(format, args...)}
	}
	if err := decodeStrictly(raw, s); err != nil {
		return tampered("%v", err)
	}
	if s.Seq != seq {
		return tampered("its seq is %d", s.Seq)
	}
	if hash := s.computeHash(); hash != s.Hash {
		return tampered("its hash is %s, its content has %s", s.Hash.Short(), hash.Short())
	}
	return nil
}

// checkEnds checks the ends: the first state, the state in the outcome, and the head.
func (t *Trace) checkEnds(last canonical.Digest, d *document) error {
	tampered := func(format string, args ...any) error {
		return &TamperError{Place: "outcome", What: fmt.Sprintf(format, args...)}
	}
	if err := decodeStrictly(d.Head, &t.Head); err != nil {
		return tampered("head: %v", err)
	}
	var err error
	if t.outcome, err = canonical.JSON(d.Outcome); err != nil {
		return tampered("%v", err)
	}
	if computed := headOf(last, t.outcome); computed != t.Head {
		return tampered("head is %s, last step and outcome have %s", t.Head.Short(), computed.Short())
	}
	if err := canonical.Unmarshal(t.outcome, &t.Outcome); err != nil {
		return tampered("%v", err)
	}
	if first := t.Steps[0].From; first != states.Received {
		return &TamperError{Place: "step", Seq: 0,
			What: fmt.Sprintf("it begins at %q, not at %q", first, states.Received)}
	}
	if end := t.Steps[len(t.Steps)-1].To; string(end) != t.Outcome.State {
		return tampered("its state is %q, the last step ends at %q", t.Outcome.State, end)
	}

	return nil
}
