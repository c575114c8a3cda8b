package states

// validated authorizes the call by the operator's allowlist, pins and grants (INV-3).
type validated struct{}

func (validated) Want(*Run) Command { return nil }

func (validated) Judge(r *Run, _ Event) Judgement {
	f := r.facts.Validated
	v := r.bundle.Authorize(f.tool, f.Definition, r.facts.Planned.plan.Args, r.request.Task)
	if !v.Allows() {
		return block(v)
	}
	return Judgement{Authorize, &AuthorizedFact{
		Arguments: f.Arguments, Bundle: r.bundle.Digest(), Definition: f.Definition, Plan: f.Plan, Verdict: v,
	}}
}
