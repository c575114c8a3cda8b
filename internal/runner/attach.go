package runner

import (
	"context"
	"errors"

	"pgfsm/mcp/gateway"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// attachToHeld answers a call that repeats a held call whose outcome was not delivered yet. For any
// other call, found is false.
func (r *ConfiguredRunner) attachToHeld(ctx context.Context, call *gateway.ToolCall,
	request *states.Request) (answer gateway.Answer, found bool) {
	if !r.holdsCalls || request.Round != nil || request.Large != nil {
		return answer, false
	}

	plan, verdict := policy.ReadCall(request.Text, r.Bundle.Limits())
	if !verdict.Allows() {
		return answer, false // the run's failure has the reason
	}

	caller := callerOf(call.From)
	q, err := r.runner.options.Ledger.Attach(ctx, ledger.RepeatedCall{
		Actor:      caller.Name,
		OnBehalfOf: caller.OnBehalfOf(),
		Client:     caller.Client(),
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

	return r.deliverOutcome(ctx, call, q.RunID, ledger.ByRepeat)
}

// callerOf returns a client of the gateway as a caller of the ledger.
func callerOf(client gateway.Identity) ledger.Caller {
	caller := ledger.Caller{TokenID: client.Token, Name: client.Name, Roles: []string{ledger.RoleAgent}}
	if policy.HasSubject(client.Name) {
		caller.Identity = &policy.Identity{Client: client.Client, OnBehalfOf: client.OnBehalfOf}
	}
	return caller
}

// deliverOutcome answers with the outcome of a held call that has ended, if it was not delivered
// before.
func (r *ConfiguredRunner) deliverOutcome(ctx context.Context, call *gateway.ToolCall, id,
	delivery string) (answer gateway.Answer, first bool) {
	ended, err := r.runner.endedRun(ctx, id)
	if err != nil {
		return r.refuseUnrecorded(ctx, call, id, err), true
	}
	first, err = r.runner.options.Ledger.Deliver(ctx, id, delivery)
	if err != nil {
		return r.refuseUnrecorded(ctx, call, id, err), true
	}
	if !first {
		return answer, false
	}

	r.dropHeld(ended.Run, ended.Outcome) // another gateway may have resumed the run
	return r.answerEnded(ended, nil), true
}

// readRequest returns the current state of a run.
func (r *Runner) readRequest(ctx context.Context, id string) (q ledger.RunRow, err error) {
	err = r.options.Ledger.View(ctx, func(look ledger.Reader) error {
		q, err = look.Run(id)
		return err
	})
	return q, err
}
