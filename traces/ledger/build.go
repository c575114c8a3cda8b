package ledger

import (
	"context"
	"errors"
	"fmt"

	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
)

// rejudge executes the record of a held run up to the hold. The hashes of the ledger are right, so
// an error says how this build judges the run differently from the build that held it. Only
// [ErrChanged] says that the record was changed: the same build made another trace of the run. If
// another build held the run and only the wording of reasons differs, the run continues with the
// trace of this build.
func (rec *Record) rejudge(p *traces.Replayer, build string) (again *traces.Resumption, reworded bool, err error) {
	again, err = executed(rec.reexecute(p))
	var diverged *traces.DivergenceError
	if !errors.As(err, &diverged) || diverged.What != "hash" {
		return again, false, err
	}
	if again, err = executed(p.Reexecute(&rec.Header, rec.Inputs)); err != nil {
		return nil, false, err
	}
	held := again.Run.Facts().Held
	switch {
	case held == nil:
		return nil, false, errors.New("it would not be held")
	case held.Binding != rec.Row.Binding:
		return nil, false, fmt.Errorf("its binding is %s, and approvers saw %s", held.Binding.Short(),
			rec.Row.Binding.Short())
	case rec.build == build:
		return nil, false, fmt.Errorf("%w: %w", ErrChanged, diverged)
	}
	return again, true, nil
}

// executed executes a record again up to its end.
func executed(again *traces.Resumption, err error) (*traces.Resumption, error) {
	if err != nil {
		return nil, err
	}
	_, err = again.Advance(context.Background(), nobody{}, nobody{})
	return again, err
}

// endChanged ends a held run that this build judges differently from what approvers saw. It does
// not execute the run, and adds one step to its trace. The build that held the run can derive this
// trace.
func (o *opened) endChanged(ctx context.Context, p *traces.Replayer) (got Resumed, err error) {
	got.Run = o.rec.run
	if got.Outcome, err = p.Machine().Advance(ctx, got.Run, changedBuild{o.changed}, o.rec); err != nil {
		return got, err
	}
	got.Head, err = o.rec.Finish(ctx, got.Outcome)
	return got, err
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
