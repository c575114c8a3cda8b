package states

import "pgfsm/policy"

// pending waits for a person. Only an approval of exactly what is bound goes on; silence, expiry and every other word
// deny.
type pending struct{}

func (pending) Want(r *Run) Command {
	return &AwaitDecision{Binding: r.facts.Held.Binding, Do: doAwaitDecision}
}

func (pending) Judge(r *Run, ev Event) Judgement {
	d, ok := ev.(*Decided)
	if !ok {
		return unexpected(ev, NotSent)
	}
	held := r.facts.Held
	v := policy.Verdict{Gate: policy.GateApproval, Outcome: policy.Block}
	switch {
	case d.Binding != held.Binding:
		v.Code, v.Reason = policy.CodeApprovalMismatch, "The decision is about something else than this call."
	case d.Outcome != "approve":
		v.Code, v.Reason = policy.CodeApprovalDenied, "Denied by "+d.By+": "+d.Reason
	case d.By == "" || d.By == r.request.Actor:
		v.Code, v.Reason = policy.CodeApprovalMismatch, "Nobody approves their own request."
	case !before(d.At, held.Bound.Expires):
		v.Code, v.Reason = policy.CodeApprovalExpired, "The decision came after the request had expired."
	default:
		v.Outcome, v.Reason = policy.Allow, "Approved by "+d.By+"."
		return Judgement{Approve, &ApprovedFact{At: d.At, Binding: d.Binding, By: d.By, Verdict: v}}
	}
	return block(v)
}

// before compares two times of the one form 2006-01-02T15:04:05Z. Anything else is never before anything: the zero
// expiry has passed.
func before(at, expires string) bool {
	const form = len("2006-01-02T15:04:05Z")
	return len(at) == form && len(expires) == form && at[form-1] == 'Z' && expires[form-1] == 'Z' && at < expires
}
