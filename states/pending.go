package states

import "pgfsm/policy"

// pending waits for approvers. Only an approval of exactly the bound call continues; expiry and
// every other decision deny.
type pending struct{}

func (pending) Want(r *Run) Command {
	return &AwaitDecision{Binding: r.facts.Held.Binding, Do: doAwaitDecision}
}

func (pending) Judge(r *Run, ev Event) Judgement {
	d, ok := ev.(*Decided)
	if !ok {
		return failUnexpected(ev, NotSent)
	}
	call := r.HeldCall()
	if call == nil || d.Binding != call.Binding {
		return blockRun(policy.Verdict{
			Code:    policy.CodeApprovalMismatch,
			Gate:    policy.GateApproval,
			Outcome: policy.Block,
			Reason:  "The decision is not for this call.",
		})
	}

	v := r.bundle.Agreed(call, d.At, d.Votes)
	if !v.Allows() {
		return blockRun(v)
	}

	voters := make([]string, len(d.Votes))
	for i := range d.Votes {
		voters[i] = d.Votes[i].By
	}

	return Judgement{Approve, &ApprovedFact{
		At:        d.At,
		Binding:   d.Binding,
		By:        voters,
		Verdict:   v,
		votes:     d.Votes,
		trace:     d.Trace,
		call:      d.Call,
		rewritten: d.Rewritten,
	}}
}

// HeldCall returns the held call as approvers see it, or nil if the run is not held.
func (r *Run) HeldCall() *policy.Held {
	h, a := r.facts.Held, r.facts.Assessed
	if h == nil || a == nil {
		return nil
	}
	return &policy.Held{
		Actor:      r.request.Actor,
		OnBehalfOf: h.Bound.OnBehalfOf,
		Approvers:  a.Approvers,
		Binding:    h.Binding,
		Expires:    h.Bound.Expires,
		Quorum:     a.Quorum,
	}
}
