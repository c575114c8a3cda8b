package states

// permitted consumes the permit. The record of this step is durable before pgfsm sends the call, or hands
// the permit out to the client that makes the call itself.
type permitted struct{}

func (permitted) Want(*Run) Command { return nil }

func (permitted) Judge(r *Run, _ Event) Judgement {
	permit := r.facts.Permitted.Permit
	if Delegates(r.request.Kind) {
		return Judgement{Delegate, &DelegatedFact{Call: r.askingCall(), Permit: permit}}
	}
	return Judgement{Dispatch, &DispatchedFact{Permit: permit}}
}
