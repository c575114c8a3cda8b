package traces

import (
	"bytes"
	"context"
	"sync"

	"pgfsm/policy/canonical"
	"pgfsm/states"
)

// A Chain numbers the steps of one run and links each to the one before, for whoever keeps them elsewhere than in a
// trace.
type Chain struct{ chain chain }

// NewChain begins the chain of a run at its header.
func NewChain(h *Header) *Chain { return &Chain{chain: h.chain()} }

// Behind goes on behind the last of a run's steps.
func (c *Chain) Behind(steps []Step) {
	if n := len(steps); n > 0 {
		c.chain.behind(&steps[n-1])
	}
}

// Link completes a step. Its values are not copied, so they hold as long as those of s do.
func (c *Chain) Link(s states.Step, at string) Step {
	prev, seq := c.chain.prev, c.chain.next
	line := lines.Get().(*[]byte)
	if *line = c.chain.link((*line)[:0], s, at); cap(*line) <= maxLine {
		lines.Put(line)
	}
	return Step{
		At: c.chain.at, Command: s.Command, Event: s.Event, Facts: s.Facts, From: s.From,
		Hash: c.chain.prev, Prev: prev, Seq: seq, To: s.To, Trigger: s.On,
	}
}

// lines are what steps are spelled into to be hashed, where their lines are not kept.
var lines = sync.Pool{New: func() any { return new([]byte) }}

// maxLine is the size up to which the memory of a line is used again.
const maxLine = 64 << 10

// Last returns the hash of the last step; of none, the digest of the header.
func (c *Chain) Last() canonical.Digest { return c.chain.prev }

// Head returns the head of a trace that ends with a step of this hash and in this outcome.
func Head(last canonical.Digest, o states.Outcome) canonical.Digest {
	return head(last, ending(o))
}

// line is the step's canonical form, with the hash that it has.
func (s *Step) line(doc []byte) []byte {
	c := chain{prev: s.Prev, next: s.Seq}
	begin := len(doc)
	doc = c.link(doc, states.Step{
		From: s.From, To: s.To, On: s.Trigger, Facts: s.Facts, Command: s.Command, Event: s.Event,
	}, s.At)
	if c.prev != s.Hash {
		copy(doc[begin:], bytes.Replace(doc[begin:], []byte(c.prev), []byte(s.Hash), 1))
	}
	return doc
}

// Document writes a trace: its header, its steps, one a line, its outcome and its head. Whether they fit each other is for
// [Read] to say.
func Document(h *Header, steps []Step, o states.Outcome) []byte {
	var last canonical.Digest
	lines := make([][]byte, len(steps))
	for i := range steps {
		lines[i], last = steps[i].line(nil), steps[i].Hash
	}
	outcome := ending(o)
	var doc bytes.Buffer
	writeDocument(&doc, h.canonical(), lines, outcome, head(last, outcome))
	return doc.Bytes()
}

// A Resumption is a run that is about to be executed again up to the end of its record, and to go on from there.
type Resumption struct {
	Run     *states.Run
	machine *states.Machine
	cursor  *cursor
}

// Resume reads the record of a run that has not ended, and holds it to its chain. Nothing is executed yet. The error is a
// [*TamperError] where the record does not fit.
func (p *Replayer) Resume(h *Header, steps []Step) (*Resumption, error) {
	if err := checkRunID(h.RunID); err != nil {
		return nil, err
	}
	if err := h.Bundle.check(); err != nil {
		return nil, &TamperError{Place: "header", What: err.Error()}
	}
	if err := CheckChain(h, steps); err != nil {
		return nil, err
	}
	run, err := p.start(h)
	if err != nil {
		return nil, err
	}
	return &Resumption{run, p.machine, &cursor{steps: steps, at: h.Request.At, decode: p.event}}, nil
}

// Head is the head of a trace that ends where the record ends, in this outcome.
func (r *Resumption) Head(o states.Outcome) canonical.Digest {
	var last canonical.Digest
	if n := len(r.cursor.steps); n > 0 {
		last = r.cursor.steps[n-1].Hash
	}
	return Head(last, o)
}

// Advance executes the record again and goes on behind it: door answers, rec records what is new. The record diverges
// where the machine makes something else of it.
func (r *Resumption) Advance(ctx context.Context, door states.Door, rec states.Recorder) (states.Outcome, error) {
	r.cursor.then, r.cursor.rest = door, rec
	return r.machine.Advance(ctx, r.Run, r.cursor, r.cursor)
}

// CheckChain holds steps to their hashes and to each other, and the first to the header.
func CheckChain(h *Header, steps []Step) error {
	prev, hash := h.digest(), canonical.NewHasher(kindStep)
	for i := range steps {
		s := &steps[i]
		if s.Seq != i || s.Prev != prev {
			return &TamperError{Place: "step", Seq: i, What: "it was chained to another step"}
		}
		var raw rawStep
		text := func(place int, v string) { raw[place] = canonical.AppendText(nil, v) }
		text(inAt, s.At)
		text(inFrom, string(s.From))
		text(inHash, string(s.Hash))
		text(inPrev, string(s.Prev))
		text(inTo, string(s.To))
		text(inTrigger, string(s.Trigger))
		raw[inCommand], raw[inEvent], raw[inFacts] = s.Command, s.Event, s.Facts
		raw[inSeq] = canonical.MustMarshal(i)
		if got := raw.digest(hash); got != s.Hash {
			return &TamperError{Place: "step", Seq: i, What: "its hash is not that of its content"}
		}
		prev = s.Hash
	}
	return nil
}
