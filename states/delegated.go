package states

// delegated waits for the client's report about the call that it makes itself. The effect is unknown until
// then, and a report is a claim of the client.
type delegated struct{}

func (delegated) Want(r *Run) Command {
	return &AwaitReport{Do: doAwaitReport, Permit: r.facts.Delegated.Permit}
}

func (delegated) Judge(r *Run, ev Event) Judgement {
	permit := r.facts.Delegated.Permit
	switch e := ev.(type) {
	case *CallReported:
		return Judgement{Report, &ReportedFact{
			Arguments: e.Arguments,
			Failed:    e.Failed,
			Permit:    permit,
			Ran:       e.Ran,
			Result:    e.Result,
			Rewritten: e.Arguments != "" && e.Arguments != r.facts.Validated.Arguments,
		}}
	case *ReportLapsed:
		return Judgement{Lapse, &UnreportedFact{Permit: permit, Reason: e.Reason}}
	}
	return Judgement{Lapse, &UnreportedFact{Permit: permit, Reason: "The report could not be read."}}
}
