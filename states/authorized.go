package states

import "pgfsm/policy"

// authorized assesses the call: risk and policy.
type authorized struct{}

func (authorized) Want(*Run) Command { return nil }

func (authorized) Judge(r *Run, _ Event) Judgement {
	f := r.facts.Validated
	a := r.bundle.Decide(question(r, f.tool, r.request.At))
	if a.Verdict.Blocks() {
		return block(a.Verdict)
	}
	return Judgement{Assess, &AssessedFact{
		Arguments: f.Arguments, Bundle: r.bundle.Digest(), Definition: f.Definition, Expires: a.Expires, Mode: a.Mode,
		Plan: f.Plan, Score: a.Score, Verdict: a.Verdict,
	}}
}

// question is what policy is asked about the run's call, as of now.
func question(r *Run, tool *policy.Tool, now string) policy.Question {
	return policy.Question{
		Server: tool.Server, Tool: tool, Env: r.bundle.Content().Env, Actor: r.request.Actor,
		Arguments: r.facts.Planned.plan.Args, Now: now,
	}
}
