package main

import (
	"pgfsm/mcp/gateway"
	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/settings"
	"pgfsm/states"
)

// settingsNone is the word of serve.record by which nothing is recorded.
const settingsNone = settings.RecordNone

// What an agent can do about a refusal: the values of retry.
const (
	retryNo      = "no"      // the same call will be refused again
	retryChanged = "changed" // with other arguments
	retryLater   = "later"   // as it is, after a while
	retryLook    = "look"    // nobody knows whether the call happened: look before anything else
	retrySame    = "same"    // exactly as it is: it attaches to the request that waits
)

// A refusal is what an agent is told of a call that came to no result: the structured content of the answer.
type refusal struct {
	Code   string `json:"code"`             // docs/errors.md
	Decide string `json:"decide,omitempty"` // where people decide
	Effect string `json:"effect"`           // not_sent, unknown or done
	Policy string `json:"policy"`           // the policy that decided; empty if none did
	Reason string `json:"reason"`
	Retry  string `json:"retry"`
	After  int    `json:"retry_after_s,omitzero"` // seconds
	RunID  string `json:"run_id"`
}

// refusalOf says why a run ended without a result.
func refusalOf(run *states.Run, o states.Outcome) refusal {
	r := refusal{Code: string(o.Code), Effect: string(o.Effect), Reason: o.Reason, RunID: run.ID()}
	if r.Effect == "" {
		r.Effect = string(states.NotSent)
	}
	f := run.Facts()
	switch {
	case f.Assessed != nil:
		r.Policy = f.Assessed.Policy
	case f.Stopped != nil && f.Stopped.Assessment != nil:
		r.Policy = f.Stopped.Assessment.Policy
	}
	r.Retry = retryOf(o)
	return r
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

func (g *gate) opaque() bool { return g.loaded.Serve.Denials == settings.DenialsOpaque }

// The one answer to whatever the operator's rules refuse, where they do not explain themselves.
const (
	opaqueCode   = "refused"
	opaqueReason = "The operator's rules do not allow this call."
)

// refuse answers with a refusal. One by the operator's rules says as much as they want said: what is wrong with the
// arguments of a tool that the agent can see, it is told in any case.
func (g *gate) refuse(r refusal, rules bool) gateway.Answer {
	if rules && g.opaque() && r.Retry != retryChanged {
		r = refusal{Code: opaqueCode, Effect: r.Effect, Reason: opaqueReason, Retry: retryNo, RunID: r.RunID}
	}
	if g.opaque() {
		r.Policy = "" // it is the operator's word for the rule
	}
	return gateway.Answer{Result: r.result("The call was refused", true)}
}

// result is the refusal as the result of a tools/call: for models in words, for programs as an object.
func (r refusal) result(what string, isError bool) []byte {
	type text struct {
		Text string `json:"text"`
		Type string `json:"type"`
	}
	return canonical.MustSorted(struct {
		Content    []text  `json:"content"`
		IsError    bool    `json:"isError"`
		Structured refusal `json:"structuredContent"`
	}{[]text{{what + " (" + r.Code + "): " + r.Reason, "text"}}, isError, r})
}
