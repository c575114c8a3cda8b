package traces

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/fsm"
	"pgfsm/policy/canonical"
	"pgfsm/states"
)

// MaxTraceBytes bounds the size of a trace that is read: a result of the largest size, every byte of it escaped, and as
// much again.
const MaxTraceBytes = 1 << 30

// ErrTampered is wrapped by every [TamperError].
var ErrTampered = errors.New("the trace is not as it was written")

// TamperError names the first place of a trace that does not fit the chain.
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

// Trace is a trace that was read and whose chain holds.
type Trace struct {
	Header  Header
	Steps   []Step
	Outcome states.Outcome
	Head    canonical.Digest

	outcome jsontext.Value // canonical
}

// Read reads a finished trace and holds it to its chain. The error is a [*TamperError] when the document is a trace in
// which something was changed, and says what is wrong with the JSON when it is none. The trace keeps parts of doc.
func Read(doc []byte) (*Trace, error) { return new(bundles).read(doc) }

// document holds the members of a trace as they stand in the file.
type document struct {
	bundle, format, head, machine, outcome, request, runID, steps jsontext.Value
	rawSteps                                                      []jsontext.Value
}

func (d *document) slot(name []byte) *jsontext.Value {
	switch string(name) {
	case `"bundle"`:
		return &d.bundle
	case `"format"`:
		return &d.format
	case `"head"`:
		return &d.head
	case `"machine"`:
		return &d.machine
	case `"outcome"`:
		return &d.outcome
	case `"request"`:
		return &d.request
	case `"run_id"`:
		return &d.runID
	}
	return nil
}

// parse finds the members of a trace in one pass. The decoder refuses what is not strict JSON.
func (d *document) parse(doc []byte) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc))
	// value returns the next value as a part of doc, which, unlike the decoder's buffer, stays.
	value := func() (jsontext.Value, error) {
		v, err := dec.ReadValue()
		if err != nil {
			return nil, canonical.Explain(err)
		}
		end := dec.InputOffset()
		return doc[end-int64(len(v)) : end : end], nil
	}
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return errors.New("not a trace: it is not a JSON object")
	}
	for dec.PeekKind() == '"' {
		name, err := value()
		if err != nil {
			return err
		}
		if string(name) == `"steps"` && dec.PeekKind() == '[' {
			if d.rawSteps, err = list(dec, value); err != nil {
				return err
			}
			d.steps = jsontext.Value("[]")
			continue
		}
		slot := d.slot(name)
		if slot == nil {
			return fmt.Errorf("not a trace: it has a member %s", clip(string(name)))
		}
		if *slot, err = value(); err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return canonical.Explain(err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return canonical.ErrTrailing
	}
	for _, v := range []jsontext.Value{d.bundle, d.format, d.head, d.machine, d.outcome, d.request, d.runID, d.steps} {
		if v == nil || v.Kind() == 'n' {
			return errors.New("not a trace: a member is missing")
		}
	}
	return nil
}

func list(dec *jsontext.Decoder, value func() (jsontext.Value, error)) (all []jsontext.Value, err error) {
	if _, err := dec.ReadToken(); err != nil {
		return nil, canonical.Explain(err)
	}
	all = make([]jsontext.Value, 0, 16)
	for dec.PeekKind() != ']' {
		v, err := value()
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	_, err = dec.ReadToken()
	return all, err
}

// readChain reads the steps, from the header's digest on, and returns the last hash.
func (t *Trace) readChain(header canonical.Digest, steps []jsontext.Value) (canonical.Digest, error) {
	if len(steps) == 0 {
		return "", &TamperError{Place: "step", Seq: 0, What: "there is no step"}
	}
	prev := header
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
	return prev, nil
}

// read reads one step and holds it to its own hash. A step that does not fit may have been reformatted: it is brought
// to canonical form, which ours has already, and looked at once more.
func (s *Step) read(line jsontext.Value, seq int) error {
	bad := func(format string, args ...any) error {
		return &TamperError{Place: "step", Seq: seq, What: fmt.Sprintf(format, args...)}
	}
	hash, err := s.decode(line)
	if err == nil && hash != s.Hash {
		if line, err = canonical.JSON(line); err == nil {
			hash, err = s.decode(line)
		}
	}
	switch {
	case err != nil:
		return bad("%v", err)
	case s.Seq != seq:
		return bad("its seq is %d", s.Seq)
	case hash != s.Hash:
		return bad("its hash is %s, its content has %s", s.Hash.Short(), hash.Short())
	}
	return nil
}

// decode reads the members of a step, each exactly once, and returns the hash that they have.
func (s *Step) decode(line []byte) (canonical.Digest, error) {
	var raw rawStep
	dec := jsontext.NewDecoder(bytes.NewBuffer(line))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return "", errors.New("it is not an object")
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadValue()
		if err != nil {
			return "", canonical.Explain(err)
		}
		at := member(name)
		if at < 0 {
			return "", fmt.Errorf("it has a member %s", clip(string(name)))
		}
		v, err := dec.ReadValue()
		if err != nil {
			return "", canonical.Explain(err)
		}
		end := dec.InputOffset()
		raw[at] = line[end-int64(len(v)) : end : end]
	}
	if _, err := dec.ReadToken(); err != nil {
		return "", canonical.Explain(err)
	}
	for i, v := range raw {
		if v == nil {
			return "", fmt.Errorf("it has no member %q", stepMembers[i])
		}
	}
	if err := s.take(&raw); err != nil {
		return "", err
	}
	return raw.digest(), nil
}

// member finds the place of a quoted name.
func member(quoted []byte) int {
	for i, name := range stepMembers {
		if len(quoted) == len(name)+2 && string(quoted[1:len(quoted)-1]) == name {
			return i
		}
	}
	return -1
}

// take reads the values of a step.
func (s *Step) take(raw *rawStep) error {
	texts := [...]struct {
		place int
		to    func(string)
	}{
		{inAt, func(v string) { s.At = v }},
		{inFrom, func(v string) { s.From = fsm.State(v) }},
		{inHash, func(v string) { s.Hash = canonical.Digest(v) }},
		{inPrev, func(v string) { s.Prev = canonical.Digest(v) }},
		{inTo, func(v string) { s.To = fsm.State(v) }},
		{inTrigger, func(v string) { s.Trigger = fsm.Trigger(v) }},
	}
	for _, text := range texts {
		v, err := unquote(raw[text.place])
		if err != nil {
			return fmt.Errorf("its %s is not a string", stepMembers[text.place])
		}
		text.to(v)
	}
	seq, err := strconv.Atoi(string(raw[inSeq]))
	if err != nil || strconv.Itoa(seq) != string(raw[inSeq]) {
		return errors.New("its seq is not a number")
	}
	s.Seq, s.Command, s.Event, s.Facts = seq, raw[inCommand], raw[inEvent], raw[inFacts]
	return nil
}

func unquote(v jsontext.Value) (string, error) {
	if v.Kind() != '"' {
		return "", errors.New("not a string")
	}
	b, err := jsontext.AppendUnquote(make([]byte, 0, len(v)), v)
	return string(b), err
}

// close checks the ends: where the trace starts, where its outcome says it ended, and the head.
func (t *Trace) close(last canonical.Digest, d *document) error {
	bad := func(format string, args ...any) error {
		return &TamperError{Place: "outcome", What: fmt.Sprintf(format, args...)}
	}
	stated, err := unquote(d.head)
	if err != nil {
		return bad("head is not a string")
	}
	t.Head = canonical.Digest(stated)
	if t.outcome, err = canonical.JSON(d.outcome); err != nil {
		return bad("%v", err)
	}
	if got := head(last, t.outcome); got != t.Head {
		return bad("head is %s, last step and outcome have %s", t.Head.Short(), got.Short())
	}
	if err := canonical.Unmarshal(t.outcome, &t.Outcome); err != nil {
		return bad("%v", err)
	}
	if first := t.Steps[0].From; first != states.Received {
		return &TamperError{Place: "step", Seq: 0, What: fmt.Sprintf("it begins at %q, not at %q", first, states.Received)}
	}
	if end := t.Steps[len(t.Steps)-1].To; string(end) != t.Outcome.State {
		return bad("its state is %q, the last step ends at %q", t.Outcome.State, end)
	}
	return nil
}
