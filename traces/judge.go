package traces

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy"
	"pgfsm/states"
)

// An UnansweredError means that a bundle needs an answer to judge a recorded run, and that the
// record does not contain it.
type UnansweredError struct{ What string }

func (e *UnansweredError) Error() string { return "the record does not have " + e.What }

// Bundle compiles a recorded bundle, or returns the cached one.
func (p *Replayer) Bundle(recorded *Bundle) (*policy.Bundle, error) {
	if err := recorded.checkDigest(); err != nil {
		return nil, err
	}
	return p.cachedBundle(recorded)
}

// Judge judges the request of a record by a bundle, with every gate up to the decision about the
// call. It uses the recorded tool listings, plan and earlier calls. It calls nothing, and stops
// before an approval and before the permit is used. The returned run is not recorded; its steps
// have the time of the request. The error is an [*UnansweredError] if the bundle needs an answer
// that the record does not contain.
func (p *Replayer) Judge(h *Header, inputs []Input, bundle *policy.Bundle) (*states.Run, []Step, error) {
	recordedRun, err := p.newRun(h)
	if err != nil {
		return nil, nil, err
	}

	// The recorded plan is judged, so the recorded planner is part of the bundle.
	if h.Request.Kind == states.KindAsk {
		content := *bundle.Content()
		content.Planner = recordedRun.Bundle().Content().Planner
		if bundle, err = p.compile(content); err != nil {
			return nil, nil, err
		}
	}

	handler := &recordedEffects{run: states.NewRun(h.RunID, h.Request, bundle), own: recordedRun.Bundle()}
	if large := h.Request.Large; large != nil && !bundle.TooLarge(large) {
		return handler.run, nil, &UnansweredError{"the arguments, which were refused for their size"}
	}

	if h.Request.Session != nil && bundle.ReadsSession() && !handler.own.ReadsSession() {
		return handler.run, nil, &UnansweredError{"the earlier calls of the session"}
	}

	for _, input := range inputs {
		if err := handler.addEvent(p, input.Event); err != nil {
			return nil, nil, err
		}
	}

	steps := &judgedSteps{chain: NewChain(h), at: h.Request.At}
	_, err = p.machine.Advance(context.Background(), handler.run, handler, steps)

	return handler.run, steps.steps, err
}

// A recordedEffects answers commands from a record until the call is decided.
type recordedEffects struct {
	run     *states.Run
	own     *policy.Bundle // bundle of the recorded run
	listed  states.Event
	planned states.Event
	history *states.HistoryRead
}

// addEvent adds a recorded event. Of each kind, only the first event precedes the decision.
func (d *recordedEffects) addEvent(p *Replayer, raw jsontext.Value) error {
	if raw == nil {
		return nil
	}
	event, err := p.decodeEvent(raw)
	if err != nil {
		return err
	}
	switch e := event.(type) {
	case *states.ToolsListed:
		if d.listed == nil {
			d.listed = e
		}
	case *states.Completed:
		if d.planned == nil {
			d.planned = e
		}
	case *states.HistoryRead:
		d.history = e
	}
	return nil
}

// Do implements [states.EffectHandler.Do].
func (d *recordedEffects) Do(_ context.Context, command states.Command) (states.Event, error) {
	switch w := command.(type) {
	case nil:
		if d.run.State() == states.Permitted {
			return nil, states.ErrParked
		}
		return nil, nil
	case *states.ListTools:
		if d.listed == nil {
			return nil, &UnansweredError{"the tools of the servers"}
		}
		return d.listed, nil
	case *states.Complete:
		if d.planned == nil {
			return nil, &UnansweredError{"a plan"}
		}
		return d.planned, nil
	case *states.ReadHistory:
		return d.answerHistory(w)
	}
	return nil, states.ErrParked
}

// answerHistory answers from the recorded earlier calls.
func (d *recordedEffects) answerHistory(command *states.ReadHistory) (states.Event, error) {
	answer := &states.HistoryRead{Calls: []policy.TaskCalls{}, Values: make([]policy.HistoryAnswer, len(command.Queries))}
	if command.Origins {
		if d.history == nil || d.history.Origins == nil || !d.run.Bundle().SameLabels(d.own) {
			return nil, &UnansweredError{"where the arguments come from, by these labels"}
		}
		answer.Origins = d.history.Origins
	}
	if f := d.run.Facts().Validated; command.Task {
		if d.history == nil || !d.own.Counts(f.Server, f.Tool) {
			return nil, &UnansweredError{"the earlier calls of the task"}
		}
		answer.Calls = d.history.Calls
	}
	for i, query := range command.Queries {
		index := -1
		if d.history != nil {
			index = slices.IndexFunc(d.history.Values, func(a policy.HistoryAnswer) bool { return a.Query() == query })
		}
		if index < 0 {
			return nil, &UnansweredError{fmt.Sprintf("the answer to %s", query)}
		}
		answer.Values[i] = d.history.Values[index]
	}
	return answer, nil
}

// judgedSteps collects steps.
type judgedSteps struct {
	chain *Chain
	at    string
	steps []Step
}

// Append implements [states.Recorder.Append].
func (j *judgedSteps) Append(_ context.Context, s states.Step) error {
	s.Command, s.Event, s.Facts = s.Command.Clone(), s.Event.Clone(), s.Facts.Clone()
	j.steps = append(j.steps, j.chain.Link(s, j.at))
	return nil
}
