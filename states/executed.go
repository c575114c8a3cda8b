package states

import "pgfsm/policy"

// executed types the result (INV-4). A result that cannot be typed is still answered, raw and
// without a summary.
type executed struct{}

func (executed) Want(*Run) Command { return nil }

func (executed) Judge(r *Run, _ Event) Judgement {
	e, b := r.facts.Executed, r.facts.Permitted.bundle
	structured, note := policy.ReadResult(e.raw, e.members, b.Limits().JSONDepth)
	if note == "" {
		v := b.Typed(r.facts.Permitted.tool, structured)
		if v.Allows() {
			return Judgement{Parse, &TypedFact{
				Definition: r.facts.Validated.Definition,
				Result:     e.Result,
				Structured: structuredDigest(structured),
				Verdict:    v,
				structured: structured,
			}}
		}
		note = v.Reason
	}
	return answerResult(r, "The result is raw: "+note)
}

// answerResult returns the result to the caller.
func answerResult(r *Run, note string) Judgement {
	return Judgement{Answer, &AnsweredFact{Note: note, Result: r.facts.Executed.Result}}
}
