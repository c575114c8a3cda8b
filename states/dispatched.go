package states

import (
	"fmt"

	"pgfsm/policy"
)

// dispatched makes the one call. From here on the effect may have happened, and the outcome's
// effect must say so.
type dispatched struct{}

func (dispatched) Want(r *Run) Command {
	p := r.facts.Permitted
	return &CallTool{
		Arguments: r.facts.Validated.Arguments,
		Do:        doCallTool,
		Permit:    p.Permit,
		Round:     p.Round,
		Server:    p.Server,
		Tool:      p.Tool,
		Trace:     p.Trace,
		Beside:    r.request.Round,
		Bytes:     p.Arguments,
		Run:       r.id,
	}
}

func (dispatched) Judge(r *Run, ev Event) Judgement {
	switch e := ev.(type) {
	case *Interrupted:
		return failRun(policy.CodeIndeterminate,
			"The process ended, or lost its lease on the ledger, during the call. The call may have happened; pgfsm never makes it again.", EffectUnknown)
	case *EffectFailed:
		return failRun(e.Code, e.Reason, e.Effect)
	case *ToolReturned:
		if most := r.facts.Permitted.bundle.Limits().ResultBytes; len(e.Result) > most {
			return failRun(policy.CodeResultTooLarge,
				fmt.Sprintf("The result has %d bytes; at most %d are accepted.", len(e.Result), most), EffectDone)
		}
		return Judgement{Return, &ExecutedFact{
			Bytes:  len(e.Result),
			Permit: r.facts.Dispatched.Permit,
			Result: resultDigest(e.Result),
			raw:    e.Result,
		}}
	}
	return failUnexpected(ev, EffectUnknown)
}
