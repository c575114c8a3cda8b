package main

import (
	"pgfsm/config"
	"pgfsm/mcp/gateway"
	"pgfsm/policy"
	"pgfsm/states"
)

// settingsNone is the word of serve.record by which nothing is recorded.
const settingsNone = config.RecordNone

// What an agent can do about a refusal: the values of retry.
const (
	retryNo      = "no"      // the same call will be refused again
	retryChanged = "changed" // with other arguments
	retryLater   = "later"   // as it is, after a while
	retryLook    = "look"    // nobody knows whether the call happened: look before anything else
	retrySame    = "same"    // exactly as it is: it attaches to the request that waits
)

// refusalOf says why a run ended without a result.
func refusalOf(run *states.Run, o states.Outcome) gateway.Decision {
	d := gateway.Decision{Code: string(o.Code), Effect: string(o.Effect), Reason: o.Reason, Retry: retryOf(o), RunID: run.ID()}
	if d.Effect == "" {
		d.Effect = string(states.NotSent)
	}
	f := run.Facts()
	switch {
	case f.Assessed != nil:
		d.Policy = f.Assessed.Policy
	case f.Stopped != nil && f.Stopped.Assessment != nil:
		d.Policy = f.Stopped.Assessment.Policy
	}
	return d
}

// retryOf says what can be done about an outcome.
func retryOf(o states.Outcome) string {
	switch o.Effect {
	case states.EffectUnknown:
		return retryLook
	case states.EffectDone:
		return retryNo
	}
	switch o.Gate {
	case policy.GateInput, policy.GatePlan:
		return retryChanged
	case policy.GateRun:
		return retryLater
	}
	switch o.Code {
	case policy.CodeArgumentsInvalid, "arguments_too_complex", policy.CodeArgumentsNotGranted:
		return retryChanged
	case policy.CodeServerDown, policy.CodeToolDefinitionChanged, policy.CodeBundleChanged, policy.CodeApprovalExpired:
		return retryLater
	}
	return retryNo
}

func (g *gate) opaque() bool { return g.loaded.Serve.Denials == config.DenialsOpaque }

// The one answer to whatever the operator's rules refuse, where they do not explain themselves.
const (
	opaqueCode   = "refused"
	opaqueReason = "The operator's rules do not allow this call."
)

// refuse answers with a refusal. One by the operator's rules says as much as they want said: what is wrong with the
// arguments of a tool that the agent can see, it is told in any case.
func (g *gate) refuse(d gateway.Decision, rules bool) gateway.Answer {
	if rules && g.opaque() && d.Retry != retryChanged {
		d = gateway.Decision{Code: opaqueCode, Effect: d.Effect, Reason: opaqueReason, Retry: retryNo, RunID: d.RunID}
	}
	if g.opaque() {
		d.Policy = "" // it is the operator's word for the rule
	}
	return gateway.Answer{Result: d.Result(true)}
}
