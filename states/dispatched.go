package states

import (
	"bytes"
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
		Bytes:     r.facts.Planned.plan.Args,
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
		digest := resultDigest(e.Result)
		return Judgement{Return, &ExecutedFact{
			Bytes:    len(e.Result),
			Permit:   r.facts.Dispatched.Permit,
			Result:   digest,
			raw:      e.Result,
			members:  e.members,
			redacted: e.Redacted,
			digest:   digest,
		}}
	}
	return failUnexpected(ev, EffectUnknown)
}

// consumePermit hands out the permit, once, for exactly the call that it was minted for.
func (r *Run) consumePermit(call *CallTool) error {
	p, d := r.facts.Permitted, r.facts.Dispatched
	if r.state != Dispatched || r.consumed || p == nil || d == nil ||
		d.Permit != call.Permit || p.Permit != call.Permit || p.Server != call.Server || p.Tool != call.Tool ||
		p.digest(r.id) != call.Permit || !bytes.Equal(call.Bytes.Bytes(), p.Arguments) ||
		!call.Trace.equal(p.Trace) || call.Round != p.Round || p.Round != r.request.roundDigest() ||
		!bytes.Equal(call.Beside, r.request.Round) {
		return ErrPermit
	}
	r.consumed = true
	return nil
}
