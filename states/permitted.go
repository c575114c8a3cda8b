package states

// permitted consumes the permit. The record of this step is durable before pgfsm sends the call.
type permitted struct{}

func (permitted) Want(*Run) Command { return nil }

func (permitted) Judge(r *Run, _ Event) Judgement {
	return Judgement{Dispatch, &DispatchedFact{Permit: r.facts.Permitted.Permit}}
}
