package runner

import (
	"context"
	"errors"

	"pgfsm/internal/runner/ratelimit"
	"pgfsm/mcp/gateway"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// mayAttach reports whether a call may repeat a held one. A call without a plan never does.
func (r *ConfiguredRunner) mayAttach(request *states.Request, plan *policy.Plan) bool {
	return r.holdsCalls && request.Round == nil && plan != nil
}

// answerLimited answers a call that a limit refuses. A repetition of a held call is answered anyway:
// it is no further call.
func (r *ConfiguredRunner) answerLimited(ctx context.Context, call *gateway.ToolCall, request *states.Request,
	plan *policy.Plan, refused *ratelimit.Refusal) gateway.Answer {
	switch run, err := r.findHeld(ctx, call, request, plan); {
	case err == nil:
		return r.answerRepeated(ctx, call, run)
	case !errors.Is(err, ledger.ErrNotFound):
		return r.refuseUnrecorded(ctx, call, "", err)
	}
	return r.refuseLimited(ctx, call, refused)
}

// findHeld returns the id of the held call that a call repeats, or [ledger.ErrNotFound]. Only
// calls that a limit refuses need it: the others attach in the first commit of their run.
func (r *ConfiguredRunner) findHeld(ctx context.Context, call *gateway.ToolCall, request *states.Request,
	plan *policy.Plan) (run string, err error) {
	if !r.mayAttach(request, plan) {
		return "", ledger.ErrNotFound
	}

	caller := callerOf(call.From)
	if err := r.runner.options.Ledger.CheckRequester(ctx, caller, ledger.ActCall); err != nil {
		return "", err
	}
	return r.runner.options.Ledger.Attach(ctx, ledger.RepeatedCall{
		Actor:      caller.Name,
		OnBehalfOf: caller.OnBehalfOf(),
		Client:     caller.Client(),
		Server:     call.Server,
		Tool:       call.Tool,
		Arguments:  plan.ArgsDigest(),
	})
}

// answerRepeated answers a call that repeats a held one whose outcome was not delivered yet.
func (r *ConfiguredRunner) answerRepeated(ctx context.Context, call *gateway.ToolCall, id string) gateway.Answer {
	q, err := r.runner.readRequest(ctx, id)
	switch {
	case err != nil:
		return r.refuseUnrecorded(ctx, call, "", err)
	case q.Ended == "":
		return r.answerWaiting(ctx, call, heldRequest(&q), false)
	}

	answer, first := r.deliverOutcome(ctx, call, id, ledger.ByRepeat)
	if !first { // another repetition got the outcome, so this is a new call
		return r.Call(ctx, call)
	}
	return answer
}

// callerOf returns a client of the gateway as a caller of the ledger.
func callerOf(client gateway.Identity) ledger.Caller {
	role := ledger.RoleAgent
	if client.Principal == client.Name && client.Token != "" {
		role = ledger.RolePerson
	}
	caller := ledger.Caller{TokenID: client.Token, Name: client.Name, Roles: []string{role}}
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
