package states

import (
	"fmt"
	"strings"

	"pgfsm/policy"
)

// approved judges the call again after the approval, with the tool as its server lists it now and
// with the bundle that is active now. If the judgement is the one that approvers saw, their votes
// stay and the call continues under the active bundle; otherwise the run ends. The votes are also
// needed if the active bundle would allow the call without approvers. The gates count earlier calls
// as they were when the run was authorized, because later runs have counted this run since then.
type approved struct{}

func (approved) Want(r *Run) Command {
	return &ListTools{Do: doListTools, Servers: r.bundle.Servers(), Judged: r.bundle}
}

func (approved) Judge(r *Run, ev Event) Judgement {
	listed, ok := ev.(*ToolsListed)
	if !ok {
		return failUnexpected(ev, NotSent)
	}

	// The bundle that is active now judges the call, if it is another than that of the run.
	b, by := r.bundle, "checked again, nothing changed."
	if listed.Bundle != nil {
		var err error
		if b, err = r.bundle.CompileActive(listed.Bundle.Content, listed.Bundle.Digest); err != nil {
			return blockRun(bundleChanged("The active configuration cannot be read: " +
				strings.ReplaceAll(err.Error(), "\n", "; ") + "."))
		}
		by = "judged again by the active configuration, the judgement is the same."
	}

	tool, now, v := rejudge(r, b, listed)
	if !v.Allows() {
		stopped := &StoppedFact{Effect: NotSent, Verdict: v}
		if listed.Bundle != nil {
			stopped.Bundle = listed.Bundle.Digest
		}
		return Judgement{Block, stopped}
	}

	// The permit names the active bundle, under which the run continues.
	permit := mintPermit(r, b, tool, policy.Verdict{
		Gate: policy.GateApproval, Outcome: policy.Allow,
		Reason: fmt.Sprintf("Approved by %s; %s", strings.Join(r.facts.Approved.By, ", "), by),
	})
	permit.Fact.(*PermittedFact).Binding = now.digest()

	return permit
}

// rejudge judges an approved call by every gate of a bundle, and compares the judgement with the
// one that approvers saw.
func rejudge(r *Run, b *policy.Bundle, listed *ToolsListed) (tool *policy.Tool, now Binding, v policy.Verdict) {
	if v = screenRequest(b, &r.request); !v.Allows() {
		return tool, now, v
	}
	if v = rereadPlan(r, b); !v.Allows() {
		return tool, now, v
	}
	plan, id := r.facts.Planned.plan, b.Reread(r.request.Identity, r.bundle)
	if tool, v = b.Validate(b.Catalog(listed.Catalog(), listed.Servers), plan, id); !v.Allows() {
		return tool, now, v
	}
	// Its earlier calls were not read.
	if b.Counts(tool.Server, tool.Name) && !r.bundle.Counts(tool.Server, tool.Name) {
		return tool, now, bundleChanged("A grant of the active configuration counts the calls of this tool, and none did when the call was held.")
	}
	if b.ReadsSession() && !r.bundle.ReadsSession() && r.request.Session != nil {
		return tool, now, bundleChanged("The active configuration reads the session of this call, which was not read when the call was held.")
	}
	if b.ReadsOrigins() && !sameOrigins(r, b) {
		return tool, now, bundleChanged("The active configuration reads where the arguments come from, and that was not read by its labels when the call was held.")
	}
	if v = b.Authorize(tool, id, r.facts.Validated.Definition, plan.Args.Bytes(),
		r.facts.Authorized.taskWithCalls(r.request.Task)); !v.Allows() {
		return tool, now, v
	}
	// As it is now: a condition on the time may deny the call by now, or one on the session.
	current := questionFor(r, b, tool, r.facts.Approved.At)
	if current.Session != nil {
		current.Session.Rewritten = current.Session.Rewritten || r.facts.Approved.rewritten
	}
	if v = b.Decide(current).Verdict; v.Blocks() {
		return tool, now, v
	}

	// As it was held: the expiry counts from the request.
	a := newAssessedFact(r, b, b.Decide(questionFor(r, b, tool, r.request.At)))
	if v = a.Verdict; v.Blocks() {
		return tool, now, v
	}

	bound := r.facts.Held.Bound
	if now = bindCall(r, b, tool, a); v.Allows() { // it needs the votes of the policy that held it
		now.Approvers, now.Condition, now.Expires, now.Fresh = bound.Approvers, bound.Condition, bound.Expires,
			bound.Fresh
		now.Policy, now.Quorum = bound.Policy, bound.Quorum
	}

	if what := bound.describeChanges(&now); what != "" {
		return tool, now, bundleChanged("The active configuration judges the held call otherwise: " + what + ".")
	}

	return tool, now, b.Agreed(r.HeldCall(), r.facts.Approved.At, r.facts.Approved.votes)
}

// rereadPlan reads the plan again: another bundle may have smaller limits. Of a planner's output
// only the canonical form is left.
func rereadPlan(r *Run, b *policy.Bundle) (v policy.Verdict) {
	if r.request.Kind == KindAsk {
		_, v = policy.ReadPlan(r.facts.Planned.Plan, b.Limits())
	} else {
		_, v = policy.ReadCall(r.request.Text, b.Limits())
	}
	return v
}

func bundleChanged(reason string) policy.Verdict {
	return policy.Verdict{
		Code:    policy.CodeBundleChanged,
		Gate:    policy.GateApproval,
		Outcome: policy.Block,
		Reason:  reason,
	}
}
