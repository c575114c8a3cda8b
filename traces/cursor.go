package traces

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
)

// DivergenceError is the first place where executing a trace again differs from the trace.
type DivergenceError struct {
	Seq      int
	Kind     string // "missing": recorded, not produced; "extra": produced, not recorded; "different"
	What     string // command, event, facts, transition, time, step or outcome
	Recorded string
	Produced string
}

// Kinds of divergence.
const (
	Missing   = "missing"
	Extra     = "extra"
	Different = "different"
)

// Code is the stable name of the divergence, for machines: divergence_missing, divergence_extra,
// divergence_different.
func (e *DivergenceError) Code() string { return "divergence_" + e.Kind }

func (e *DivergenceError) Error() string {
	return fmt.Sprintf("%s: step %d: %s %s: recorded %s, produced %s", e.Code(), e.Seq, e.Kind, e.What,
		clipText(e.Recorded), clipText(e.Produced))
}

func clipText(s string) string {
	const most = 300
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%q… (%d bytes, %s)", s[:most], len(s), canonical.Sum("clipped", []byte(s)).Short())
}

// A cursor is the handler and the recorder of a run that is executed again. As long as there are
// recorded steps, the handler only reads them and the recorder only compares. After the last one,
// the run continues with nextHandler and nextRecorder, if they are set. A parked or
// interrupted run is resumed in this way.
type cursor struct {
	steps        []Step
	seq          int
	lastAt       string // time of the previous step; before the first step, the arrival of the request
	decode       func(jsontext.Value) (states.Event, error)
	nextHandler  states.EffectHandler
	nextRecorder states.Recorder
	parked       bool // the record ends at pending or delegated

	chain       *Chain // not nil: the record holds only inputs, and the other members of a step are derived
	hashedSteps int    // number of steps up to the one that must have hash; 0: no step must
	hash        canonical.Digest
}

// Do returns the recorded event of the current step.
func (c *cursor) Do(ctx context.Context, command states.Command) (states.Event, error) {
	if c.seq >= len(c.steps) {
		return c.continueAfterRecord(ctx, command)
	}

	step := &c.steps[c.seq]
	produced := jsontext.Value("null")
	if command != nil {
		produced = canonical.MustSorted(command)
	}

	if c.chain == nil && !bytes.Equal(produced, step.Command) {
		return nil, c.divergence("command", step.Command, produced)
	}
	event, err := c.decode(step.Event)
	if err != nil {
		return nil, &DivergenceError{c.seq, Different, "event", err.Error(), "an event that this version reads"}
	}

	if decided, ok := event.(*states.Decided); ok {
		if err := c.checkOrder(decided); err != nil {
			return nil, err
		}
	}

	_, interruption := event.(*states.Interrupted)
	if !interruption && (command == nil) != (event == nil) {
		return nil, c.divergence("event", step.Event, produced)
	}

	return event, nil
}

func (c *cursor) continueAfterRecord(ctx context.Context, command states.Command) (states.Event, error) {
	if c.nextHandler != nil {
		return c.nextHandler.Do(ctx, command)
	}
	switch command.(type) {
	case *states.AwaitDecision, *states.AwaitReport:
		if c.parked {
			return nil, states.ErrParked
		}
	}
	return nil, &DivergenceError{c.seq, Extra, "step", "the end of the trace", "a further step"}
}

// checkOrder returns an error if a decision or a vote has a time before the previous step, which
// held the run.
func (c *cursor) checkOrder(d *states.Decided) error {
	first := d.At
	if len(d.Votes) > 0 {
		first = d.Votes[0].At // the votes are in order, and none is after the decision
	}
	if !isTime(d.At) || first < c.lastAt {
		return &DivergenceError{c.seq, Different, "time", "a decision or vote at " + first,
			"a time from " + c.lastAt + " on, when the run was held"}
	}
	return nil
}

// isTime reports whether s has the one form in which times compare like their text.
func isTime(s string) bool {
	t, err := time.Parse(policy.TimeForm, s)
	return err == nil && t.Format(policy.TimeForm) == s
}

// Append compares a step with the recorded one.
func (c *cursor) Append(ctx context.Context, s states.Step) error {
	if c.seq >= len(c.steps) {
		return c.nextRecorder.Append(ctx, s)
	}

	step := &c.steps[c.seq]
	recorded := fmt.Sprintf("%s --%s--> %s", step.From, step.Trigger, step.To)
	if step.From != s.From || step.Trigger != s.On || step.To != s.To {
		return &DivergenceError{c.seq, Different, "transition", recorded,
			fmt.Sprintf("%s --%s--> %s", s.From, s.On, s.To)}
	}
	if !bytes.Equal(step.Event, s.Event) {
		return c.divergence("event", step.Event, s.Event)
	}
	if c.chain == nil && !bytes.Equal(step.Facts, s.Facts) {
		return c.divergence("facts", step.Facts, s.Facts)
	}
	if !isTime(step.At) || step.At < c.lastAt {
		return &DivergenceError{c.seq, Different, "time", step.At,
			"a time from " + c.lastAt + " on, when the step before was recorded"}
	}

	if c.chain != nil {
		if err := c.deriveStep(s); err != nil {
			return err
		}
	}

	c.seq, c.lastAt = c.seq+1, step.At
	return nil
}

func (c *cursor) divergence(what string, recorded, produced jsontext.Value) error {
	kind := Different
	switch {
	case recorded.Kind() == 'n':
		kind = Extra
	case produced.Kind() == 'n':
		kind = Missing
	}
	return &DivergenceError{c.seq, kind, what, string(recorded), string(produced)}
}
