package traces

import (
	"bytes"
	"errors"
	"fmt"
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
func Read(doc []byte) (*Trace, error) { return new(shared).read(doc) }

// readChain holds the steps to the chain, from the header's digest on, and returns the last hash.
func (t *Trace) readChain(header canonical.Digest, steps []rawStep) (canonical.Digest, error) {
	if len(steps) == 0 {
		return "", &TamperError{Place: "step", Seq: 0, What: "there is no step"}
	}
	prev, h := header, canonical.NewHasher(kindStep)
	t.Steps = make([]Step, len(steps))
	for i := range steps {
		step := &t.Steps[i]
		if err := step.read(&steps[i], i, h); err != nil {
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

// read takes one step and holds it to its own hash. A step that does not fit may have been reformatted: its members are
// brought to canonical form, which ours have already, and it is looked at once more.
func (s *Step) read(raw *rawStep, seq int, h *canonical.Hasher) error {
	bad := func(format string, args ...any) error {
		return &TamperError{Place: "step", Seq: seq, What: fmt.Sprintf(format, args...)}
	}
	if err := s.take(raw); err != nil {
		return bad("%v", err)
	}
	hash := raw.digest(h)
	if hash != s.Hash {
		for i, v := range raw {
			c, err := canonical.JSON(v)
			if err != nil {
				return bad("%v", err)
			}
			raw[i] = c
		}
		if err := s.take(raw); err != nil {
			return bad("%v", err)
		}
		hash = raw.digest(h)
	}
	switch {
	case s.Seq != seq:
		return bad("its seq is %d", s.Seq)
	case hash != s.Hash:
		return bad("its hash is %s, its content has %s", s.Hash.Short(), hash.Short())
	}
	return nil
}

// take reads the values of a step.
func (s *Step) take(raw *rawStep) error {
	for i, v := range raw {
		if v == nil {
			return fmt.Errorf("it has no member %q", stepMembers[i])
		}
	}
	var texts [len(stepMembers)]string
	for _, place := range [...]int{inAt, inFrom, inHash, inPrev, inTo, inTrigger} {
		text, err := unquote(raw[place])
		if err != nil {
			return fmt.Errorf("its %s is not a string", stepMembers[place])
		}
		texts[place] = text
	}
	seq, err := strconv.Atoi(string(raw[inSeq]))
	if err != nil || strconv.Itoa(seq) != string(raw[inSeq]) {
		return errors.New("its seq is not a number")
	}
	*s = Step{
		At: texts[inAt], Command: raw[inCommand], Event: raw[inEvent], Facts: raw[inFacts], From: fsm.State(texts[inFrom]),
		Hash: canonical.Digest(texts[inHash]), Prev: canonical.Digest(texts[inPrev]), Seq: seq, To: fsm.State(texts[inTo]),
		Trigger: fsm.Trigger(texts[inTrigger]),
	}
	return nil
}

// unquote reads a JSON string.
func unquote(v jsontext.Value) (string, error) {
	if v.Kind() != '"' {
		return "", errors.New("not a string")
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1]), nil // the decoder has read it: it is whole and UTF-8
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
