package runner

import (
	"context"
	"errors"

	"pgfsm/mcp/gateway"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// attach answers a call that repeats a held call whose outcome was not delivered yet. For any other
// call, found is false.
func (r *ConfiguredRunner) attach(ctx context.Context, call *gateway.ToolCall, text []byte) (answer gateway.Answer,
	found bool) {
	plan, v := policy.ReadCall(text, r.Bundle.Limits())
	if !v.Allows() {
		return answer, false // the run's failure has the reason
	}

	by := callerOf(call.From)
	q, err := r.runner.options.Ledger.Attach(ctx, ledger.Look{
		Actor:      by.Name,
		OnBehalfOf: by.OnBehalfOf(),
		Client:     by.Client(),
		Server:     call.Server,
		Tool:       call.Tool,
		Arguments:  states.ArgumentsDigest(plan.Args),
	})

	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return answer, false
	case err != nil:
		return r.refuseUnrecorded(ctx, call, "", err), true
	case q.Ended == "":
		return r.answerWaiting(ctx, call, heldRequest(&q), false), true
	}

	return r.deliver(ctx, call, q.RunID, ledger.ByRepeat)
}

// callerOf returns a client of the gateway as a caller of the ledger.
func callerOf(who gateway.Identity) ledger.Caller {
	by := ledger.Caller{TokenID: who.Token, Name: who.Name, Roles: []string{ledger.RoleAgent}}
	if policy.HasSubject(who.Name) {
		by.Identity = &policy.Identity{Client: who.Client, OnBehalfOf: who.OnBehalfOf}
	}
	return by
}

// deliver answers with the outcome of a held call that has ended, if it was not delivered before.
func (r *ConfiguredRunner) deliver(ctx context.Context, call *gateway.ToolCall, id,
	how string) (answer gateway.Answer, first bool) {
	got, err := r.runner.endedRun(ctx, id)
	if err == nil {
		first, err = r.runner.options.Ledger.Deliver(ctx, id, how)
	}
	switch {
	case err != nil:
		return r.refuseUnrecorded(ctx, call, id, err), true
	case !first:
		return answer, false
	}
	r.dropHeld(got.Run, got.Outcome) // another gateway may have resumed the run
	return r.answer(got, nil), true
}

// request returns the current state of a run.
func (r *Runner) request(ctx context.Context, id string) (q ledger.RunRow, err error) {
	err = r.options.Ledger.View(ctx, func(look ledger.Reader) error {
		q, err = look.Run(id)
		return err
	})
	return q, err
}
