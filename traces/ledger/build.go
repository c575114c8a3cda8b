package ledger

import (
	"context"
	"errors"
	"fmt"

	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

// rejudgeHeld executes the record of a held run up to the hold. The hashes of the ledger are right,
// so an error says how this build judges the run differently from the build that held it. Only
// [ErrChanged] says that the record was changed: the same build made another trace of the run. If
// another build held the run and only the wording of reasons differs, the run continues with the
// trace of this build.
func (rec *Record) rejudgeHeld(p *traces.Replayer, build string) (
	resumption *traces.Resumption, reworded bool, err error) {
	resumption, err = advanceToEnd(rec.reexecute(p))
	var diverged *traces.DivergenceError
	if !errors.As(err, &diverged) || diverged.What != "hash" {
		return resumption, false, err
	}
	if resumption, err = advanceToEnd(p.Reexecute(&rec.Header, rec.Inputs)); err != nil {
		return nil, false, err
	}
	heldFact := resumption.Run.Facts().Held
	switch {
	case heldFact == nil:
		return nil, false, errors.New("it would not be held")
	case heldFact.Binding != rec.Row.Binding:
		return nil, false, fmt.Errorf("its binding is %s, and approvers saw %s", heldFact.Binding.Short(),
			rec.Row.Binding.Short())
	case rec.build == build:
		return nil, false, fmt.Errorf("%w: %w", ErrChanged, diverged)
	}
	return resumption, true, nil
}

// advanceToEnd executes a record again up to its end.
func advanceToEnd(resumption *traces.Resumption, err error) (*traces.Resumption, error) {
	if err != nil {
		return nil, err
	}
	_, err = resumption.Advance(context.Background(), readOnly{}, readOnly{})
	return resumption, err
}

// endChanged ends a held run that this build judges differently from what approvers saw. It does
// not execute the run, and adds one step to its trace. The build that held the run can derive this
// trace.
func (o *openedRun) endChanged(ctx context.Context, p *traces.Replayer) (resumed Resumed, err error) {
	resumed.Run = o.recorder.run
	if resumed.Outcome, err = p.Machine().Advance(ctx, resumed.Run, changedBuild{o.changed}, o.recorder); err != nil {
		return resumed, err
	}
	resumed.Head, err = o.recorder.Finish(ctx, resumed.Outcome)
	return resumed, err
}

// changedBuild is the handler of a held run that this build judges differently.
type changedBuild struct{ how error }

// Do is [states.EffectHandler.Do].
func (c changedBuild) Do(context.Context, states.Command) (states.Event, error) {
	how := c.how.Error()
	if unread := new(traces.TamperError); errors.As(c.how, &unread) { // the hashes of the ledger are right
		how = "it cannot read the " + unread.Place + ": " + unread.What
	}
	return states.Interruption(policy.CodeBuildChanged,
		"This version of pgfsm does not judge the held call as approvers saw it: "+how+"."), nil
}
