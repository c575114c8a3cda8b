package traces

import (
	"bytes"
	"context"
	"fmt"

	"pgfsm/internal/canonical"
	"pgfsm/states"
)

// Document writes a trace: its header, its steps, one a line, its outcome and its head. The steps
// must be linked by a [Chain].
func Document(h *Header, steps []Step, o states.Outcome) []byte {
	var doc bytes.Buffer
	doc.Write(bytes.TrimSuffix(canonical.MustSorted(h), []byte("}")))
	doc.WriteString(`,"steps":[`)

	var last canonical.Digest
	for i := range steps {
		if i > 0 {
			doc.WriteString(",")
		}
		doc.WriteString("\n")
		doc.Write(steps[i].canonicalLine())
		last = steps[i].Hash
	}

	outcome := canonical.MustSorted(o)
	fmt.Fprintf(&doc, "\n],\"outcome\":%s,\"head\":%q}\n", outcome, headOf(last, outcome))

	return doc.Bytes()
}

// Machine returns the machine that executes the runs.
func (p *Replayer) Machine() *states.Machine { return p.machine }

// A Resumption is a run that executes its record again and then continues.
type Resumption struct {
	Run     *states.Run
	machine *states.Machine
	cursor  *cursor
}

// Head returns the head of a trace that ends where the record ends, in this outcome.
func (r *Resumption) Head(o states.Outcome) canonical.Digest {
	var last canonical.Digest
	if n := len(r.cursor.steps); n > 0 {
		last = r.cursor.steps[n-1].Hash
	}
	return Head(last, o)
}

// Chain returns the chain of the record's steps once Advance has executed them. Further steps
// continue it.
func (r *Resumption) Chain() *Chain { return r.cursor.chain }

// Steps returns the steps of the record. They are complete once Advance has executed them.
func (r *Resumption) Steps() []Step { return r.cursor.steps }

// Advance executes the record again and continues after it: handler answers, and rec records the
// new steps. The error is a [*DivergenceError] if the machine behaves differently than recorded.
func (r *Resumption) Advance(ctx context.Context, handler states.EffectHandler, rec states.Recorder) (states.Outcome,
	error) {
	r.cursor.nextHandler, r.cursor.nextRecorder = handler, rec
	return r.machine.Advance(ctx, r.Run, r.cursor, r.cursor)
}
