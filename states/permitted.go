package states

// permitted consumes the permit. The append of this step is durable before the call leaves.
type permitted struct{}

func (permitted) Want(*Run) Command { return nil }

func (permitted) Judge(r *Run, _ Event) Judgement {
	return Judgement{Dispatch, &DispatchedFact{Permit: r.facts.Permitted.Permit}}
}
