package ledger

import (
	"cmp"
	"slices"

	"pgfsm/fsm"
	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
)

// projectEvent applies one event to a request. The writer and Verify both use it; each counts the
// run's entries itself.
func projectEvent(r *RunRow, e *Event, p payload) error {
	if _, first := p.(*requestCreated); first != (r.RunID == "") {
		return ruleRunOrder.Broken("%s cannot happen to the run now", e.Type)
	}
	_, isDelivery := p.(*outcomeDelivered)
	if r.Ended != "" && !isDelivery { // only a delivery can follow the end
		return ruleRunOrder.Broken("the run has ended")
	}
	if err := p.applyTo(r, e); err != nil {
		return err
	}
	// A delivery must not change what a client sees: a completed task stays the same, byte for
	// byte.
	if !isDelivery {
		r.Updated = e.At
	}
	return nil
}

func (p *requestCreated) applyTo(r *RunRow, e *Event) error {
	if c := p.Call; c != nil {
		if _, err := canonical.ParseDigest(string(c.Definition)); err != nil {
			return ruleForm.Broken("the definition of its call: %w", err)
		}
	}
	*r = RunRow{
		RunID:  e.RunID,
		At:     p.Request.At,
		Kind:   p.Request.Kind,
		Actor:  p.Request.Actor,
		Env:    p.generation.Env,
		Bundle: p.generation.Bundle,
		First:  e.Index,
		Owner:  e.By,
		Status: Proposed,
		State:  states.Received,
		Task:   p.Request.Task,
		Trace:  p.Request.Trace.TraceID(),

		Session:    p.Request.SessionKey(),
		ClientCall: p.Request.Session.CallID(),
	}

	if i := p.Request.Identity; i != nil {
		r.OnBehalfOf, r.Client, r.Display, r.OnBehalfOfDisplay = i.OnBehalfOf, i.Client, i.Display, i.OnBehalfOfDisplay
	}

	if c := p.Call; c != nil {
		r.Server, r.Tool, r.Arguments, r.Definition = c.Server, c.Tool, canonical.Sum(kindArguments, c.Args),
			c.Definition
		r.Args = c.argsColumn()
	} else {
		request := p.wholeRequest()
		r.Server, r.Tool, r.Args = requestedCall(&request)
	}

	return nil
}

// maxRequestedName bounds, in bytes, a name from a request that was not validated.
const maxRequestedName = 256

// requestedCall returns the call of a request whose plan was not validated, so that users find the
// request. Nothing has checked that the server and its tool exist, or that the arguments fit.
// Longer names, and arguments over [MaxInline], are left out. A question names no call.
func requestedCall(q *states.Request) (server, tool, args string) {
	if q.Kind == states.KindAsk {
		return "", "", ""
	}
	for name, value := range canonical.Members(q.Text) {
		text, err := canonical.Unquote(value)
		isName := err == nil && len(text) <= maxRequestedName
		switch {
		case name == "server" && isName:
			server = text
		case name == "tool" && isName:
			tool = text
		case name == "args" && len(value) <= MaxInline:
			if compact, err := canonical.JSON(value); err == nil && len(compact) <= MaxInline {
				args = string(compact)
			}
		}
	}
	return server, tool, args
}

// kindArguments is the kind of the digest of arguments, as approvals bind it.
const kindArguments = "arguments"

// argsColumn returns the arguments as the request's row contains them: the value, or
// [ArgsInEntry].
func (c *plannedCall) argsColumn() string {
	if len(c.Args) > MaxInline {
		return ArgsInEntry
	}
	return string(c.Args)
}

func (p *callReserved) applyTo(r *RunRow, _ *Event) error {
	if r.Status != Proposed || r.State != states.Received || !r.Validated() {
		return ruleDecision.Broken("a place is taken once, for a call that nothing has decided about")
	}
	r.State = states.Validated
	p.record.addSteps(r)
	return nil
}

func (p *riskScored) applyTo(r *RunRow, _ *Event) error {
	r.Mode, r.Score = p.Mode, p.Score
	return nil
}

func (p *decisionMade) applyTo(r *RunRow, _ *Event) error {
	r.Policy, r.Reason = p.Policy, p.Reason
	// The call is judged again after the approval, and the policy still allows or holds it.
	if r.Status == Approved {
		return nil
	}
	switch policy.Outcome(p.Outcome) {
	case policy.Allow:
		r.Status = Allowed
	case policy.Hold:
		r.Status = Pending
	default:
		r.Status = Denied
	}
	return nil
}

func (p *approvalRequested) applyTo(r *RunRow, _ *Event) error {
	if p.Quorum < 1 {
		return ruleForm.Broken("it needs %d people", p.Quorum)
	}
	if r.Status != Pending {
		return ruleHold.Broken("people are asked about a request that is %s", r.Status)
	}
	r.Binding, r.Approvers, r.Quorum, r.Expires, r.Head = p.Binding, p.Approvers, p.Quorum, p.Expires, p.Last
	r.Owner, r.State = "", states.Pending // held: no process owns it
	p.record.addSteps(r)
	return nil
}

func (p *approvalVote) applyTo(r *RunRow, e *Event) error {
	if r.Status != Pending || p.Binding != r.Binding {
		return ruleVote.Broken("a vote about a request that is %s, or about another binding", r.Status)
	}
	switch {
	case p.approve:
		r.Agreed++
		if p.Decides {
			r.Status, r.Expires = Approved, cmp.Or(p.Expires, r.Expires)
		}
	case !p.Decides:
		return ruleQuorum.Broken("a denial that does not decide")
	default:
		r.Status, r.Code, r.Reason = Denied, string(policy.CodeApprovalDenied), p.asVote(e.At, e.By).Denied()
	}
	return nil
}

func (p *approvalExpired) applyTo(r *RunRow, _ *Event) error {
	if r.Status != Pending && r.Status != Approved || r.Sent != "" {
		return ruleExpiry.Broken("a request that is %s expired", r.Status)
	}
	r.Status, r.Code = Expired, string(policy.CodeApprovalExpired)
	return nil
}

func (p *runClaimed) applyTo(r *RunRow, e *Event) error {
	r.Owner = e.By
	return nil
}

func (p *proxySent) applyTo(r *RunRow, e *Event) error {
	if r.Status != Allowed && r.Status != Approved || r.Sent != "" || r.Delegates() {
		return ruleCall.Broken("a call of a request of the kind %s that is %s", r.Kind, r.Status)
	}
	r.Sent, r.State, r.CallTrace = e.At, states.Dispatched, p.Trace
	p.record.addSteps(r)
	return nil
}

func (p *toolResult) applyTo(r *RunRow, _ *Event) error {
	if p.Bytes < 0 {
		return ruleForm.Broken("a result of %d bytes", p.Bytes)
	}
	if r.Sent == "" || r.Delegates() {
		return ruleResult.Broken("a result of a call that was not made")
	}
	r.Status, r.State = Executed, states.Executed
	return nil
}

func (p *callDelegated) applyTo(r *RunRow, e *Event) error {
	if r.Status != Allowed && r.Status != Approved || r.Sent != "" || !r.Delegates() {
		return ruleCall.Broken("a permit is handed out for a request of the kind %s that is %s", r.Kind, r.Status)
	}
	r.Sent, r.State, r.Status, r.Owner, r.ClientCall = e.At, states.Delegated, Delegated, "", p.Call
	p.record.addSteps(r)
	return nil
}

// applyReport moves a run on whose client reported, or did not.
func applyReport(r *RunRow, status Status, state fsm.State) error {
	if r.State != states.Delegated {
		return ruleResult.Broken("a report about a request that is %s", r.Status)
	}
	r.Status, r.State = status, state
	return nil
}

func (p *callReported) applyTo(r *RunRow, _ *Event) error {
	return applyReport(r, Reported, states.Reported)
}

func (p *callUnreported) applyTo(r *RunRow, _ *Event) error {
	return applyReport(r, Unreported, states.Unreported)
}

func (p *callRewritten) applyTo(r *RunRow, _ *Event) error {
	if r.Status != Reported {
		return ruleResult.Broken("a rewritten call of a request that is %s", r.Status)
	}
	return nil
}

func (p *runEnded) applyTo(r *RunRow, e *Event) error {
	if _, err := canonical.ParseDigest(string(p.Head)); err != nil {
		return ruleForm.Broken("the head of its trace: %w", err)
	}
	o := p.Outcome
	r.Ended, r.Owner = e.At, ""
	r.Code, r.Reason = string(o.Code), o.Reason
	p.record.addSteps(r)
	r.State, r.Head = fsm.State(o.State), p.Head
	switch {
	case o.Type == states.TypeFailed && o.Code == policy.CodeIndeterminate:
		r.Status = Indeterminate
	case o.Type == states.TypeFailed:
		r.Status = Failed
	case o.Type == states.TypeBlocked && o.Code == policy.CodeApprovalExpired:
		r.Status = Expired
	case o.Type == states.TypeBlocked:
		r.Status = Denied
	}
	return nil
}

func (p *outcomeDelivered) applyTo(r *RunRow, e *Event) error {
	switch {
	case r.Binding == "" || r.Ended == "":
		return ruleDelivery.Broken("an outcome is delivered of a run that was never held, or has not ended")
	case r.Delivered != "":
		return ruleDelivery.Broken("an outcome is delivered twice")
	case !slices.Contains(DeliveryWays(), p.How):
		return ruleDelivery.Broken("no outcome is delivered by way of %q", p.How)
	}
	r.Delivered = e.At
	return nil
}

func (a *record) addSteps(r *RunRow) { r.Steps += len(a.Steps) }
