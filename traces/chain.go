package traces

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
	"pgfsm/states"
)

// stepMembers are the members of a step, in canonical order: what a step's line is made of.
var stepMembers = [...]string{"at", "command", "event", "facts", "from", "hash", "prev", "seq", "to", "trigger"}

// Places in a rawStep.
const (
	inAt = iota
	inCommand
	inEvent
	inFacts
	inFrom
	inHash
	inPrev
	inSeq
	inTo
	inTrigger
)

// rawStep holds the members of a step as they stand in the document, in canonical form.
type rawStep [len(stepMembers)][]byte

// labels are what stands before each member's value in the canonical form.
var labels = func() (all [len(stepMembers)][]byte) {
	for i, name := range stepMembers {
		sep := ","
		if i == 0 {
			sep = "{"
		}
		all[i] = []byte(sep + strconv.Quote(name) + ":")
	}
	return all
}()

// digest is the step's hash: over its canonical form without the member "hash".
func (s *rawStep) digest() canonical.Digest {
	h := canonical.NewHasher(kindStep)
	for i, value := range s {
		if i != inHash {
			h.Write(labels[i])
			h.Write(value)
		}
	}
	h.Write(closing)
	return h.Digest()
}

var closing = []byte{'}'}

// line is the step's canonical form.
func (s *rawStep) line() []byte {
	size := len(closing)
	for i, value := range s {
		size += len(labels[i]) + len(value)
	}
	b := make([]byte, 0, size)
	for i, value := range s {
		b = append(append(b, labels[i]...), value...)
	}
	return append(b, closing...)
}

// A chain extends a trace: it numbers steps and links each to the one before.
type chain struct {
	prev canonical.Digest
	next int
}

// link completes a step and returns its line.
func (c *chain) link(s states.Step, at string) []byte {
	raw := rawStep{
		inAt: quote(at), inCommand: s.Command, inEvent: s.Event, inFacts: s.Facts, inFrom: quote(s.From),
		inPrev: quote(c.prev), inSeq: strconv.AppendInt(nil, int64(c.next), 10), inTo: quote(s.To), inTrigger: quote(s.On),
	}
	c.prev, c.next = raw.digest(), c.next+1
	raw[inHash] = quote(c.prev)
	return raw.line()
}

func quote[S ~string](s S) []byte {
	b, err := jsontext.AppendQuote(make([]byte, 0, len(s)+2), string(s))
	if err != nil {
		panic("traces: a name that is not UTF-8: " + err.Error()) // states, triggers, digests and times are our own
	}
	return b
}
