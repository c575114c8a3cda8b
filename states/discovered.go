package states

import "pgfsm/policy"

// discovered obtains the plan and reads it strictly (INV-1). Only the effective allowlist of the
// requester reaches the planner.
type discovered struct{}

func (discovered) Want(r *Run) Command {
	if r.request.Kind != KindAsk {
		return nil // the request is the plan
	}
	d := r.facts.Discovered
	return &Complete{
		Do:      doComplete,
		Input:   d.Catalog,
		Planner: r.bundle.Content().Planner.Mode,
		Prompt:  r.bundle.Content().Planner.PromptVersion(),
		Purpose: PurposePlan,
		Request: r.questionText(),
		Tools:   r.bundle.EffectiveFor(d.catalog, r.request.Identity),
	}
}

func (s discovered) Judge(r *Run, ev Event) Judgement {
	var plan *policy.Plan
	var v policy.Verdict
	if r.request.Kind == KindAsk {
		completed, ok := ev.(*Completed)
		if !ok || !completed.answersCommand(s.Want(r).(*Complete)) {
			return failUnexpected(ev, NotSent)
		}
		if len(completed.Refusal) > 0 {
			return blockRun(policy.Refused(completed.Refusal))
		}
		plan, v = policy.ReadPlan(completed.Content, r.bundle.Limits())
	} else {
		plan, v = r.readCall()
	}

	if !v.Allows() {
		return blockRun(v)
	}

	return Judgement{Plan, &PlannedFact{
		Catalog: r.facts.Discovered.Catalog,
		Digest:  plan.Digest(),
		Plan:    plan.Canonical(),
		Verdict: v,
		plan:    plan,
	}}
}
