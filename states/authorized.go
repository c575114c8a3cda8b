package states

import "pgfsm/policy"

// authorized assesses the call: this is the decision of risk rules and policies. The ledger makes
// it durable at the dispatch or the hold (RunRecorder.addAssessment).
type authorized struct{}

func (authorized) Want(*Run) Command { return nil }

func (authorized) Judge(r *Run, _ Event) Judgement {
	assessed := newAssessedFact(r, r.bundle,
		r.bundle.Decide(questionFor(r, r.bundle, r.facts.Validated.tool, r.request.At)))
	if assessed.Verdict.Blocks() {
		return blockDenied(r, assessed)
	}
	return Judgement{Assess, assessed}
}

// newAssessedFact is the fact of an assessment of the run's call by a bundle.
func newAssessedFact(r *Run, b *policy.Bundle, a policy.Assessment) *AssessedFact {
	f := r.facts.Validated
	return &AssessedFact{
		Approvers:  a.Approvers,
		Arguments:  f.Arguments,
		Bundle:     b.Digest(),
		Condition:  a.Condition,
		Definition: f.Definition,
		Expires:    a.Expires,
		Fresh:      a.Fresh,
		Mode:       a.Mode,
		Plan:       f.Plan,
		Policy:     a.Policy,
		Quorum:     a.Quorum,
		Risk:       a.Risk,
		Score:      a.Score,
		Shadow:     a.Shadow,
		Verdict:    a.Verdict,
	}
}

// blockDenied ends a run whose policy denied the call, and records the assessment.
func blockDenied(r *Run, assessed *AssessedFact) Judgement {
	stopped := &StoppedFact{Effect: NotSent, Verdict: assessed.Verdict}
	if c := r.bundle.Content(); c.Risk != nil || c.Policy != nil {
		stopped.Assessment = assessed
	}
	return Judgement{Block, stopped}
}

// questionFor is the input of a bundle's risk rules and policies for the run's call, at this time.
func questionFor(r *Run, b *policy.Bundle, tool *policy.Tool, now string) policy.Question {
	return policy.Question{
		Server:    tool.Server,
		Tool:      tool,
		Env:       b.Content().Env,
		Actor:     r.request.Actor,
		Identity:  b.Reread(r.request.Identity, r.bundle),
		Arguments: r.facts.Planned.plan.Args.Bytes(),
		Now:       now,
		History:   r.facts.Authorized.historyAnswers(),
		Session:   r.request.Session.forPolicies(),
		Origins:   r.facts.Authorized.origins().forPolicies(),
		InSession: r.request.HasSession(),
	}
}

// Question returns the input of risk rules and policies for the run's call, or false if the run did
// not get that far.
func (r *Run) Question() (policy.Question, bool) {
	f := r.facts.Validated
	if f == nil || f.tool == nil || r.facts.Authorized == nil {
		return policy.Question{}, false
	}
	return questionFor(r, r.bundle, f.tool, r.request.At), true
}
