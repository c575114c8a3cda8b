package states

import "pgfsm/policy"

// assessed mints the permit, or holds the run for approvers.
type assessed struct{}

func (assessed) Want(*Run) Command { return nil }

func (assessed) Judge(r *Run, _ Event) Judgement {
	a := r.facts.Assessed
	if a.Verdict.Holds() {
		if len(r.request.Round) > 0 {
			return block(policy.Unapprovable())
		}
		b := Binding{
			Actor: r.request.Actor, Arguments: a.Arguments, Bundle: a.Bundle, Definition: a.Definition, Expires: a.Expires,
			Run: r.id, Server: r.facts.Validated.Server, Tool: r.facts.Validated.Tool,
		}
		return Judgement{Hold, &HeldFact{Binding: b.digest(), Bound: b, Reason: a.Verdict.Reason}}
	}
	return mint(r, r.facts.Validated.tool, a.Verdict)
}

// mint makes the permit for the run's call.
func mint(r *Run, tool *policy.Tool, v policy.Verdict) Judgement {
	f := &PermittedFact{
		Arguments: r.facts.Planned.plan.Args, Assessed: v, Bundle: r.bundle.Digest(), Definition: tool.Digest,
		Plan: r.facts.Planned.Digest, Round: r.request.round(), Server: tool.Server, Tool: tool.Name,
	}
	f.Permit = f.digest(r.id)
	return Judgement{Permit, f}
}
