package traces

import (
	"bytes"
	"cmp"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/fsm"
	"pgfsm/internal/canonical"
	"pgfsm/states"
)

// An Input is the recorded part of one step: the inputs that the machine cannot compute again, and
// the trigger that it chose. The commands, facts and hashes of a trace are derived from the inputs.
type Input struct {
	// Time of recording, as RFC 3339 in UTC; empty: the time of the previous step, or of the run's
	// start.
	At      string
	Event   jsontext.Value // canonical; nil if the step has none
	Trigger fsm.Trigger
}

// Resume returns a run that executes its record again and continues after it. If n is not 0, hash
// is that of the nth step in the run's trace. If the machine produces another hash, Advance returns
// a [*DivergenceError]. Resume executes nothing yet. The error is a [*TamperError] if the header
// was changed.
func (p *Replayer) Resume(h *Header, inputs []Input, n int, hash canonical.Digest) (*Resumption, error) {
	r, err := p.Reexecute(h, inputs)
	if err != nil {
		return nil, err
	}
	r.cursor.hashedSteps, r.cursor.hash = n, hash
	return r, nil
}

// Reexecute is [Replayer.Resume] for an audit by another build, which may word its reasons
// differently: it compares no hash.
func (p *Replayer) Reexecute(h *Header, inputs []Input) (*Resumption, error) {
	if err := checkRunID(h.RunID); err != nil {
		return nil, err
	}
	if err := h.Bundle.checkDigest(); err != nil {
		return nil, &TamperError{Place: "header", What: err.Error()}
	}
	run, err := p.newRun(h)
	if err != nil {
		return nil, err
	}

	steps := make([]Step, len(inputs))
	state, previousTime := states.Received, h.Request.At

	for i, input := range inputs {
		input.At = cmp.Or(input.At, previousTime)
		previousTime = input.At
		event := input.Event
		if event == nil {
			event = jsontext.Value("null")
		}
		steps[i] = Step{
			At:      input.At,
			Event:   event,
			From:    state,
			Seq:     i,
			To:      p.targetState(state, input.Trigger),
			Trigger: input.Trigger,
		}
		state = steps[i].To
	}

	c := &cursor{steps: steps, lastAt: h.Request.At, decode: p.decodeEvent, chain: NewChain(h)}
	return &Resumption{run, p.machine, c}, nil
}

// targetState returns the state to which the machine's table leads; empty if the table has no such
// row.
func (p *Replayer) targetState(state fsm.State, trigger fsm.Trigger) fsm.State {
	for _, row := range p.machine.Spec().Rows {
		if row.From == state && row.On == trigger {
			return row.To
		}
	}
	return ""
}

// deriveStep completes a step whose record holds only the input.
func (c *cursor) deriveStep(s states.Step) error {
	step := &c.steps[c.seq]
	*step = c.chain.Link(states.Step{
		From:    s.From,
		To:      s.To,
		On:      s.On,
		Facts:   bytes.Clone(s.Facts),
		Command: bytes.Clone(s.Command),
		Event:   step.Event,
	}, step.At)
	if c.seq == c.hashedSteps-1 && step.Hash != c.hash {
		return &DivergenceError{c.seq, Different, "hash", string(c.hash), string(step.Hash)}
	}
	return nil
}
