package states

import "pgfsm/policy"

// planned validates the plan against the live catalog (INV-2), or returns the planner's question to
// the caller.
type planned struct{}

func (planned) Want(*Run) Command { return nil }

func (planned) Judge(r *Run, _ Event) Judgement {
	p := r.facts.Planned
	if p.plan.Type == policy.PlanFinalAnswer {
		return Judgement{Ask, &AskedFact{Answer: p.plan.Answer, Plan: p.Digest}}
	}
	tool, v := r.bundle.Validate(r.facts.Discovered.catalog, p.plan, r.request.Identity)
	if !v.Allows() {
		return blockRun(v)
	}
	return Judgement{Validate, &ValidatedFact{
		Arguments:  p.plan.ArgsDigest(),
		Definition: tool.Digest,
		Dialect:    tool.Dialect(),
		Plan:       p.Digest,
		Schema:     tool.OwnSchema,
		Server:     tool.Server,
		Tool:       tool.Name,
		Verdict:    v,
		tool:       tool,
	}}
}
