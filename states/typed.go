package states

import (
	"pgfsm/policy"
)

// typed asks for a summary where one is wanted, and locks it to evidence (INV-5). A summary that is
// refused, or that could not be had, costs the summary and nothing else: the typed result is
// answered.
type typed struct{}

func (typed) Want(r *Run) Command {
	// an agent gets what the server sent
	if r.request.Kind == KindAgent || !r.bundle.WantsSummary(r.questionText()) {
		return nil
	}
	t := r.facts.Typed
	return &Complete{
		Do:      doComplete,
		Input:   t.Structured,
		Planner: r.bundle.Content().Planner.Mode,
		Prompt:  r.bundle.Content().Planner.PromptVersion(),
		Purpose: PurposeSummary,
		Request: r.questionText(),
		Typed:   t.structured,
	}
}

func (s typed) Judge(r *Run, ev Event) Judgement {
	command, ok := s.Want(r).(*Complete)
	if !ok {
		return answerResult(r, "")
	}

	switch e := ev.(type) {
	case *Completed:
		if !e.answersCommand(command) {
			break
		}
		if len(e.Refusal) > 0 {
			v := policy.Refused(e.Refusal)
			return answerResult(r, "No summary ("+string(v.Code)+"): "+v.Reason)
		}
		// A refused summary is dropped, and the note says why.
		items, v := r.bundle.Lock(r.facts.Typed.structured, e.Content)
		if v.Allows() {
			return Judgement{Summarize, &SummarizedFact{Items: items, Structured: r.facts.Typed.Structured, Verdict: v}}
		}
		switch {
		case v.Code != "summary_empty":
		case command.Prompt != "": // only the model says so
			return answerResult(r, "No summary (summary_empty): the model found nothing to summarize.")
		default:
			return answerResult(r, "No summary (summary_empty): the result contains nothing to summarize.")
		}
		return answerResult(r, "Summary refused ("+string(v.Code)+"): "+v.Reason)
	case *EffectFailed:
		return answerResult(r, "No summary ("+string(e.Code)+"): "+e.Reason)
	case *Interrupted:
		return answerResult(r, "No summary ("+string(e.Code)+"): "+e.Reason)
	}

	return answerResult(r, "No summary ("+string(policy.CodeEffectFailed)+"): the answer is not a completion.")
}
