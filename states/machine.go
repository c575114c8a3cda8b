package states

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/fsm"
	"pgfsm/internal/canonical"
)

// ErrParked is the error of a handler for [AwaitDecision] while no approver has decided, and for
// [AwaitReport] while there is no report. The run stays as it is.
var ErrParked = errors.New("the run waits for a person or a report")

// ErrPermit means that a stage requested a call for which the run has no unconsumed permit. It is
// never expected.
var ErrPermit = errors.New("a call was wanted without a permit for exactly it")

// An EffectHandler performs effects: it takes a command and returns its event. The loop calls it at
// every step. If a step needs no effect, the command is nil, and so is the event, unless the run
// was interrupted. An error means that the run cannot continue.
type EffectHandler interface {
	Do(ctx context.Context, wanted Command) (Event, error)
}

// A Recorder writes the record of a run. Append MUST NOT return nil before the step is in the
// record, and, for a step that fires dispatch, delegate or hold, before it is durable: the run continues as
// soon as Append returns.
type Recorder interface {
	Append(ctx context.Context, s Step) error
}

// A Step is one transition with its command, event and facts. The raw values are canonical, or
// null. They are valid until Append returns: a recorder must copy them to keep them.
type Step struct {
	From, To fsm.State
	On       fsm.Trigger
	Facts    jsontext.Value
	Command  jsontext.Value
	Event    jsontext.Value
}

// Machine executes runs. One machine serves all runs, and has no state of its own.
type Machine struct {
	table  *fsm.Machine[*Run]
	spec   *fsm.Spec
	digest canonical.Digest
}

// NewMachine compiles the table, and returns an error if the table is invalid.
func NewMachine() (*Machine, error) {
	table, err := fsm.Compile(Table())
	if err != nil {
		return nil, err
	}
	spec := table.Spec()
	digest, err := canonical.SumOf("machine", spec)
	if err != nil {
		return nil, err
	}
	return &Machine{table: table, spec: spec, digest: digest}, nil
}

// Spec returns the machine as data. It must not be changed.
func (m *Machine) Spec() *fsm.Spec { return m.spec }

// Digest names the table.
func (m *Machine) Digest() canonical.Digest { return m.digest }

// Advance moves the run until it ends or is held, and returns its outcome. It returns an error if
// the run cannot continue: the step could not be recorded, the machine refused a transition, or the
// handler failed.
func (m *Machine) Advance(ctx context.Context, r *Run, handler EffectHandler, rec Recorder) (Outcome, error) {
	for {
		stage, ok := stages[r.state]
		switch {
		case ok:
		case m.table.Terminal(r.state):
			return r.Outcome(), nil
		default:
			return Outcome{}, fmt.Errorf("state %q has no stage", r.state)
		}
		switch err := m.runStep(ctx, r, stage, handler, rec); {
		case errors.Is(err, ErrParked):
			return r.Outcome(), nil
		case err != nil:
			return Outcome{}, err
		}
	}
}

var null = jsontext.Value("null")

// runStep is the loop's body: want, do, judge, fire, append.
func (m *Machine) runStep(ctx context.Context, r *Run, stage Stage, handler EffectHandler, rec Recorder) error {
	command := stage.Want(r)
	// The permit is consumed before the handler sees the call.
	switch c := command.(type) {
	case *CallTool:
		if err := r.consumePermit(c); err != nil {
			return err
		}
	case *AwaitReport:
		r.consumed = true
	}

	event, err := handler.Do(ctx, command)
	if err != nil {
		return err
	}

	judgement := stage.Judge(r, event)
	judgement.Fact.addTo(&r.facts)
	next, err := m.table.Fire(r, r.state, judgement.On)
	if err != nil {
		var refused *fsm.TransitionError
		if errors.As(err, &refused) {
			refused.Trail = r.Trail()
		}
		return err
	}

	// The step is recorded before the run moves (see Recorder), and its fact is there already: a
	// recorder reads the facts of the step that it appends.
	step := Step{From: r.state, To: next, On: judgement.On}
	if _, nothing := rec.(interface{ keepsNothing() }); !nothing {
		step.encode(command, event, judgement.Fact)
	}

	if err := rec.Append(ctx, step); err != nil {
		return fmt.Errorf("the record cannot be kept, so the run stops here: %w", err)
	}

	r.state = next
	r.trail = append(r.trail, next)

	return nil
}

// encode sets command, event and facts of the step.
func (s *Step) encode(wanted Command, event Event, fact Fact) {
	s.Facts, s.Command, s.Event = canonical.MustSorted(fact), null, null
	if wanted != nil {
		s.Command = canonical.MustSorted(wanted)
	}
	if listed, ok := event.(*ToolsListed); ok && listed.encoded != nil {
		s.Event = listed.encoded
	} else if event != nil {
		s.Event = canonical.MustSorted(event)
	}
}
