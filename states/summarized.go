package states

// summarized answers.
type summarized struct{}

func (summarized) Want(*Run) Command { return nil }

func (summarized) Judge(r *Run, _ Event) Judgement { return answerResult(r, "") }
