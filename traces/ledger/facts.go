package ledger

import (
	"cmp"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/risk"
	"pgfsm/states"
)

// The functions below return the events that follow from the facts of a run; nil for one that does not
// happen. The recorder writes them. Verify executes the run again, and compares.

// plannedCallOf returns the call that a run has planned.
func plannedCallOf(run *states.Run) *plannedCall {
	f := run.Facts()
	if f.Validated == nil {
		return nil
	}
	return &plannedCall{
		Args:       run.Plan().Args.Bytes(),
		Definition: f.Validated.Definition,
		Server:     f.Validated.Server,
		Tool:       f.Validated.Tool,
	}
}

// assessmentOf returns the decision of risk and policy before an approval.
func assessmentOf(f *states.Facts) (*riskScored, *decisionMade) {
	a := f.Assessed
	if a == nil && f.Stopped != nil {
		a = f.Stopped.Assessment
	}
	if a == nil {
		return nil, nil
	}
	rules := (&risk.Assessment{Contributions: a.Risk}).Risk().Rules
	return &riskScored{Mode: a.Mode, Rules: rules, Score: a.Score}, newDecision("", a.Verdict, a.Policy, a.Condition)
}

// newDecision returns a verdict of a policy, which a bundle has under this id, and the condition of the policy
// that decided. The bundle is empty if it is the run's own.
func newDecision(bundle canonical.Digest, v policy.Verdict, id, condition string) *decisionMade {
	return &decisionMade{
		Bundle:    bundle,
		Code:      string(v.Code),
		Condition: condition,
		Gate:      string(v.Gate),
		Outcome:   string(v.Outcome),
		Policy:    id,
		Reason:    v.Reason,
	}
}

// unlessOwn returns the digest of a bundle unless it is the run's own.
func unlessOwn(bundle, own canonical.Digest) canonical.Digest {
	if bundle == own {
		return ""
	}
	return bundle
}

// holdOf returns the question to approvers, without its steps.
func holdOf(f *states.Facts) *approvalRequested {
	if f.Held == nil || f.Assessed == nil {
		return nil
	}
	return &approvalRequested{
		Approvers: append([]string{}, f.Assessed.Approvers...),
		Binding:   f.Held.Binding,
		Expires:   f.Held.Bound.Expires,
		Quorum:    max(f.Assessed.Quorum, 1),
	}
}

// dispatchOf returns the call that is sent, without its steps, and the decision about an approved call.
func dispatchOf(f *states.Facts, own canonical.Digest) (again *decisionMade, sent *proxySent) {
	if f.Permitted == nil || f.Dispatched == nil {
		return nil, nil
	}
	sent = &proxySent{Permit: f.Dispatched.Permit}
	if f.Approved == nil {
		return nil, sent
	}
	sent.Trace = f.Permitted.Trace.TraceID()
	return decisionAgain(f, own), sent
}

// delegateOf returns the permit that is handed out, without its steps, and the decision about an approved call.
func delegateOf(f *states.Facts, own canonical.Digest) (again *decisionMade, handed *callDelegated) {
	if f.Permitted == nil || f.Delegated == nil {
		return nil, nil
	}
	if f.Approved != nil {
		again = decisionAgain(f, own)
	}
	return again, &callDelegated{Call: f.Delegated.Call, Permit: f.Delegated.Permit}
}

// decisionAgain returns the decision about an approved call just before it is made.
func decisionAgain(f *states.Facts, own canonical.Digest) *decisionMade {
	return newDecision(unlessOwn(f.Permitted.Bundle, own), f.Permitted.Assessed, f.Assessed.Policy, f.Assessed.Condition)
}

// reportsOf returns what the client said about the call that it made itself, or that it said nothing.
func reportsOf(f *states.Facts) (reported *callReported, rewritten *callRewritten, unreported *callUnreported) {
	if r := f.Reported; r != nil {
		reported = &callReported{Arguments: r.Arguments, Failed: r.Failed, Result: r.Result}
		if r.Rewritten {
			rewritten = &callRewritten{Args: r.Ran, Arguments: r.Arguments}
		}
	}
	if u := f.Unreported; u != nil {
		unreported = &callUnreported{Reason: u.Reason}
	}
	return reported, rewritten, unreported
}

// stopOf returns the decision of a gate that stopped the run, if no other event records its verdict: the
// first decision of risk and policy. Votes and expiries have their own events, and an interruption is no
// decision. id is the policy that decided before.
func stopOf(f *states.Facts, own canonical.Digest, id string) *decisionMade {
	s := f.Stopped
	if s == nil || s.Assessment != nil || s.Verdict.Gate == policy.GateRun ||
		s.Verdict.Code == policy.CodeApprovalDenied || s.Verdict.Code == policy.CodeApprovalExpired {
		return nil
	}
	return newDecision(unlessOwn(cmp.Or(s.Bundle, own), own), s.Verdict, id, "")
}

// resultOf returns the result of the call.
func resultOf(f *states.Facts) *toolResult {
	if f.Executed == nil {
		return nil
	}
	return &toolResult{Bytes: f.Executed.Bytes, Redacted: f.Executed.Redacted()}
}
