package states

import "pgfsm/policy"

// assessed mints the permit, or holds the run for approvers.
type assessed struct{}

func (assessed) Want(*Run) Command { return nil }

func (assessed) Judge(r *Run, _ Event) Judgement {
	a := r.facts.Assessed
	if a.Verdict.Holds() {
		if len(r.request.Round) > 0 {
			return blockRun(policy.Unapprovable())
		}
		b := bindCall(r, r.bundle, r.facts.Validated.tool, a)
		return Judgement{Hold, &HeldFact{Binding: b.digest(), Bound: b, Reason: a.Verdict.Reason}}
	}
	return mintPermit(r, r.bundle, r.facts.Validated.tool, a.Verdict)
}

// mintPermit makes the permit for the run's call, which a bundle judged.
func mintPermit(r *Run, b *policy.Bundle, tool *policy.Tool, v policy.Verdict) Judgement {
	f := &PermittedFact{
		Arguments:  r.facts.Planned.plan.Args.Bytes(),
		Assessed:   v,
		Bundle:     b.Digest(),
		Definition: tool.Digest,
		Plan:       r.facts.Planned.Digest,
		Round:      r.request.roundDigest(),
		Server:     tool.Server,
		Tool:       tool.Name,
		Trace:      r.traceContext(),
		bundle:     b,
		tool:       tool,
	}
	f.Permit = f.digest(r.id)
	return Judgement{Permit, f}
}
