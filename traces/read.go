package traces

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
	"pgfsm/states"
)

// MaxTraceBytes bounds the size of a trace that is read: a result of the largest size, escaped, and as much again.
const MaxTraceBytes = 1 << 30

// ErrTampered is wrapped by every [TamperError].
var ErrTampered = errors.New("the trace is not as it was written")

// TamperError names the first place of a trace that does not fit the chain.
type TamperError struct {
	Place string // "header", "step", "outcome" or "head"
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

// Trace is a trace that was read and whose chain holds.
type Trace struct {
	Header  Header
	Steps   []Step
	Outcome states.Outcome
	Head    canonical.Digest

	outcome jsontext.Value
}

// Read reads a finished trace and holds it to its chain. The error is a [*TamperError] when the document is a trace in
// which something was changed, and says what is wrong with the JSON when it is none.
func Read(doc []byte) (*Trace, error) {
	var raw struct {
		Bundle  *jsontext.Value   `json:"bundle"`
		Format  *string           `json:"format"`
		Head    *canonical.Digest `json:"head"`
		Machine *jsontext.Value   `json:"machine"`
		Outcome *jsontext.Value   `json:"outcome"`
		Request *jsontext.Value   `json:"request"`
		RunID   *jsontext.Value   `json:"run_id"`
		Steps   *[]jsontext.Value `json:"steps"`
	}
	if err := canonical.Unmarshal(doc, &raw); err != nil {
		return nil, fmt.Errorf("not a trace: %w", err)
	}
	if raw.Format == nil || *raw.Format != Format {
		return nil, fmt.Errorf("not a trace: its format is not %q", Format)
	}
	if raw.Bundle == nil || raw.Head == nil || raw.Machine == nil || raw.Outcome == nil || raw.Request == nil ||
		raw.RunID == nil || raw.Steps == nil {
		return nil, errors.New("not a trace: a member is missing")
	}
	header, err := canonical.Marshal(map[string]any{
		"bundle": *raw.Bundle, "format": Format, "machine": *raw.Machine, "request": *raw.Request, "run_id": *raw.RunID,
	})
	if err != nil {
		return nil, err
	}
	t := &Trace{Head: *raw.Head}
	last, err := t.readChain(header, *raw.Steps)
	if err != nil {
		return nil, err
	}
	return t, t.close(last, *raw.Outcome)
}

// readChain reads the header and the steps and returns the last hash.
func (t *Trace) readChain(header []byte, steps []jsontext.Value) (canonical.Digest, error) {
	if len(steps) == 0 {
		return "", &TamperError{Place: "step", Seq: 0, What: "there is no step"}
	}
	prev := canonical.Sum(kindHeader, header)
	t.Steps = make([]Step, len(steps))
	for i, raw := range steps {
		step := &t.Steps[i]
		if err := step.read(raw, i); err != nil {
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
	if err := canonical.Unmarshal(header, &t.Header); err != nil {
		return "", &TamperError{Place: "header", What: err.Error()}
	}
	return prev, nil
}

// read reads one step and holds it to its own hash. Documents that were reformatted are brought back to canonical
// form first; ours are already.
func (s *Step) read(raw jsontext.Value, seq int) error {
	bad := func(format string, args ...any) error {
		return &TamperError{Place: "step", Seq: seq, What: fmt.Sprintf(format, args...)}
	}
	if err := s.decode(raw); err != nil {
		return bad("%v", err)
	}
	if s.Seq != seq {
		return bad("its seq is %d", s.Seq)
	}
	hash, err := s.digest()
	if err != nil {
		return bad("%v", err)
	}
	if hash == s.Hash {
		return nil
	}
	if raw, err = canonical.JSON(raw); err != nil {
		return bad("%v", err)
	}
	if err := s.decode(raw); err != nil {
		return bad("%v", err)
	}
	if hash, err = s.digest(); err != nil || hash != s.Hash {
		return bad("its hash is %s, its content has %s", s.Hash.Short(), hash.Short())
	}
	return nil
}

const stepMembers = 10

// decode reads the ten members of a step, each exactly once.
func (s *Step) decode(raw jsontext.Value) error {
	*s = Step{}
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return errors.New("it is not an object")
	}
	members := 0
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return canonical.Explain(err)
		}
		if err := s.member(name.String(), dec); err != nil {
			return err
		}
		members++
	}
	if members != stepMembers {
		return fmt.Errorf("it has %d members, want %d", members, stepMembers)
	}
	return nil
}

func (s *Step) member(name string, dec *jsontext.Decoder) (err error) {
	switch name {
	case "at":
		s.At, err = str(dec)
	case "command":
		s.Command, err = rawValue(dec)
	case "event":
		s.Event, err = rawValue(dec)
	case "facts":
		s.Facts, err = rawValue(dec)
	case "from":
		err = json.UnmarshalDecode(dec, &s.From)
	case "hash":
		err = json.UnmarshalDecode(dec, &s.Hash)
	case "prev":
		err = json.UnmarshalDecode(dec, &s.Prev)
	case "seq":
		err = json.UnmarshalDecode(dec, &s.Seq)
	case "to":
		err = json.UnmarshalDecode(dec, &s.To)
	case "trigger":
		err = json.UnmarshalDecode(dec, &s.Trigger)
	default:
		err = fmt.Errorf("it has an unknown member %q", name)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func str(dec *jsontext.Decoder) (string, error) {
	var s string
	err := json.UnmarshalDecode(dec, &s)
	return s, err
}

// rawValue returns the next value. The bytes are the decoder's buffer, which is the document and outlives it.
func rawValue(dec *jsontext.Decoder) (jsontext.Value, error) {
	v, err := dec.ReadValue()
	return bytes.Clone(v), err
}

// close checks the ends: where the trace starts, where its outcome says it ended, and the head.
func (t *Trace) close(last canonical.Digest, outcome jsontext.Value) error {
	var err error
	if t.outcome, err = canonical.JSON(outcome); err != nil {
		return &TamperError{Place: "outcome", What: err.Error()}
	}
	got, err := head(last, t.outcome)
	if err != nil {
		return &TamperError{Place: "head", What: err.Error()}
	}
	if got != t.Head {
		return &TamperError{Place: "outcome", What: fmt.Sprintf("head is %s, last step and outcome have %s", t.Head.Short(), got.Short())}
	}
	if err := canonical.Unmarshal(t.outcome, &t.Outcome); err != nil {
		return &TamperError{Place: "outcome", What: err.Error()}
	}
	if first := t.Steps[0].From; first != states.Received {
		return &TamperError{Place: "step", Seq: 0, What: fmt.Sprintf("it begins at %q, not at %q", first, states.Received)}
	}
	if end := t.Steps[len(t.Steps)-1].To; string(end) != t.Outcome.State {
		return &TamperError{Place: "outcome", What: fmt.Sprintf("its state is %q, the last step ends at %q", t.Outcome.State, end)}
	}
	return nil
}
