package states

import (
	"fmt"
	"strings"

	"pgfsm/policy"
)

// approved repeats the gates after the decision: the server must still list the tool with the same definition, and the policy must still allow or hold the
// call. For earlier calls it uses the values that were read when the run was authorized: later runs have counted this run since then.
type approved struct{}

func (approved) Want(r *Run) Command { return listTools(r) }

func (approved) Judge(r *Run, ev Event) Judgement {
	listed, ok := ev.(*ToolsListed)
	if !ok {
		return unexpected(ev, NotSent)
	}
	tool, v := r.bundle.Validate(r.bundle.Catalog(listed.Catalog(), listed.Servers), r.facts.Planned.plan)
	if !v.Allows() {
		return block(v)
	}
	if v = r.bundle.Authorize(tool, r.facts.Validated.Definition, r.facts.Planned.plan.Args, r.facts.Authorized.task(r.request.Task)); !v.Allows() {
		return block(v)
	}
	a := r.bundle.Decide(question(r, tool, r.facts.Approved.At))
	if a.Verdict.Blocks() {
		return block(a.Verdict)
	}
	return mint(r, tool, policy.Verdict{
		Gate: policy.GateApproval, Outcome: policy.Allow,
		Reason: fmt.Sprintf("Approved by %s; checked again, nothing changed.", strings.Join(r.facts.Approved.By, ", ")),
	})
}
