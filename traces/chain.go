package traces

import (
	"strconv"
	"strings"

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
func (s *rawStep) digest(h *canonical.Hasher) canonical.Digest {
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

// A chain extends a trace: it numbers steps and links each to the one before.
type chain struct {
	prev canonical.Digest
	next int
	at   string // when the step before was recorded; before the first step, when the request came
}

// chain begins the chain of a run.
func (h *Header) chain() chain { return chain{prev: h.digest(), at: h.Request.At} }

// behind moves the chain behind a step that is already linked.
func (c *chain) behind(s *Step) { c.prev, c.next, c.at = s.Hash, s.Seq+1, s.At }

// link completes a step and appends its line to doc: its canonical form. The line is written once, with room for the hash,
// which is taken over what stands before and behind that member. The time of a step is never before that of the step
// before it, even if the clock was set back.
func (c *chain) link(doc []byte, s states.Step, at string) []byte {
	begin := len(doc)
	c.at = max(c.at, at)
	b := append(canonical.AppendText(append(doc, labels[inAt]...), c.at), labels[inCommand]...)
	b = append(append(b, s.Command...), labels[inEvent]...)
	b = append(append(b, s.Event...), labels[inFacts]...)
	b = append(append(b, s.Facts...), labels[inFrom]...)
	b = canonical.AppendText(b, string(s.From))
	before := len(b)
	b = append(append(b, labels[inHash]...), noHash...)
	behind := len(b)
	b = canonical.AppendText(append(b, labels[inPrev]...), string(c.prev))
	b = strconv.AppendInt(append(b, labels[inSeq]...), int64(c.next), 10)
	b = canonical.AppendText(append(b, labels[inTo]...), string(s.To))
	b = canonical.AppendText(append(b, labels[inTrigger]...), string(s.On))
	b = append(b, closing...)
	c.prev, c.next = canonical.Sum(kindStep, b[begin:before], b[behind:]), c.next+1
	copy(b[behind-len(noHash)+1:], c.prev)
	return b
}

// usualSteps is about what the steps of a run take together.
const usualSteps = 16 << 10

// noHash keeps the room for a written digest.
var noHash = []byte(`"` + canonical.DigestPrefix + strings.Repeat("0", 64) + `"`)
