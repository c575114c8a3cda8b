package runner

import (
	"pgfsm/internal/config"
	"pgfsm/mcp/gateway"
	"pgfsm/policy"
	"pgfsm/states"
)

// The values of retry tell an agent what it can do about a refusal.
const (
	retryNo      = "no"      // the same call will be refused again
	retryChanged = "changed" // retry with other arguments
	retryLater   = "later"   // retry the same call later
	retryLook    = "look"    // the call may have happened: look before anything else
	// Retry the identical call: it attaches to the held run or, after its expiry, begins a new one
	// at once.
	retrySame = "same"
)

// If serve.denials is opaque, every refusal by the operator's rules has this answer.
const (
	opaqueCode   = "refused"
	opaqueReason = "The operator's rules do not allow this call."
)

// opaqueRecordReason replaces the error of a record, which may name files or the database, if
// serve.denials is opaque.
const opaqueRecordReason = "The gateway cannot record this call now."

func (r *ConfiguredRunner) hidesReasons() bool { return r.Serve.Denials == config.DenialsOpaque }

// refusalOf returns why a run ended without a result.
func refusalOf(run *states.Run, o states.Outcome) gateway.Decision {
	d := gateway.Decision{
		Code:   string(o.Code),
		Effect: string(o.Effect),
		Reason: o.Reason,
		Retry:  retryOf(o),
		RunID:  run.ID(),
	}
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

// retryOf returns what an agent can do about an outcome.
func retryOf(o states.Outcome) string {
	switch o.Effect {
	case states.EffectUnknown:
		return retryLook
	case states.EffectDone:
		return retryNo
	}

	switch o.Code {
	case policy.CodeCredentialsNeeded, policy.CodeCredentialsRefused, policy.CodeCredentialsChanged:
		return retrySame
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
	case policy.CodeServerDown, policy.CodeToolDefinitionChanged, policy.CodeBundleChanged, policy.CodeBuildChanged,
		policy.CodeTooManyHeld:
		return retryLater
	case policy.CodeApprovalExpired:
		return retrySame
	}

	return retryNo
}

// answerRefused answers with a refusal. If byRules is true, the operator's rules refused the call,
// and serve.denials decides how much the answer explains. It always explains faults in the
// arguments of a tool that the agent can see.
func (r *ConfiguredRunner) answerRefused(d gateway.Decision, byRules bool) gateway.Answer {
	if byRules && r.hidesReasons() && d.Retry != retryChanged {
		d = gateway.Decision{
			Code:   opaqueCode,
			Effect: d.Effect,
			Reason: opaqueReason,
			Retry:  retryNo,
			RunID:  d.RunID,
		}
	}
	if r.hidesReasons() {
		d.Policy = "" // only the operator may see the policy's name
		if d.Code == string(policy.CodeRecordFailed) {
			d.Reason = opaqueRecordReason
		}
	}
	switch policy.Code(d.Code) {
	case policy.CodeCredentialsNeeded, policy.CodeCredentialsRefused:
		d.Connect = r.ConnectURL
	}
	return gateway.Answer{Result: d.Result(true)}
}
