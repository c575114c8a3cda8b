package states

import (
	"pgfsm/policy"
	"pgfsm/policy/canonical"
)

// discovered obtains the plan and reads it strictly (INV-1). Only the effective allowlist reaches the planner.
type discovered struct{}

func (discovered) Want(r *Run) Command {
	if r.request.Kind != KindAsk {
		return nil // the request is the plan
	}
	d := r.facts.Discovered
	return &Complete{
		Do: doComplete, Input: d.Catalog, Planner: r.bundle.Content().Planner.Mode,
		Prompt: r.bundle.Content().Planner.PromptVersion(), Purpose: PurposePlan,
		Request: r.asks(), Tools: d.catalog.Effective(),
	}
}

func (s discovered) Judge(r *Run, ev Event) Judgement {
	output, known := []byte(r.request.Text), r.facts.Screened.plan
	if r.request.Kind == KindAsk {
		completed, ok := ev.(*Completed)
		if !ok || !completed.answers(s.Want(r).(*Complete)) {
			return unexpected(ev, NotSent)
		}
		if len(completed.Refusal) > 0 {
			return block(policy.Refused(completed.Refusal))
		}
		output, known = completed.Content, nil
	}
	plan, v := policy.ReadPlanAs(output, known, r.bundle.Limits())
	if !v.Allows() {
		return block(v)
	}
	if r.request.Kind != KindAsk && plan.Type != policy.PlanCallTool {
		v.Code, v.Outcome, v.Reason = policy.CodePlanInvalid, policy.Block, "A call must be a call_tool plan."
		return block(v)
	}
	c := plan.Canonical()
	return Judgement{Plan, &PlannedFact{
		Catalog: r.facts.Discovered.Catalog, Digest: canonical.Sum(kindPlan, c), Plan: c, Verdict: v, plan: plan,
	}}
}
