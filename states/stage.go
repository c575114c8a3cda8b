package states

import (
	"fmt"

	"pgfsm/fsm"
	"pgfsm/policy"
)

// A Stage is the work done while in a state, as two pure functions. Neither changes the run.
type Stage interface {
	// Want returns the command for the effect that the stage needs next, or nil.
	Want(*Run) Command
	// Judge takes the event of that command (nil without a command) and returns the fact and the
	// trigger.
	Judge(*Run, Event) Judgement
}

// A Judgement is the result of Judge: the fact that the stage establishes and the trigger that it
// fires.
type Judgement struct {
	On   fsm.Trigger
	Fact Fact
}

// stages has one stage for every state that is not terminal. A test compares it with the table.
var stages = map[fsm.State]Stage{
	Received:   interruptible{received{}},
	Screened:   interruptible{screened{}},
	Discovered: interruptible{discovered{}},
	Planned:    interruptible{planned{}},
	Validated:  interruptible{validated{}},
	Authorized: interruptible{authorized{}},
	Assessed:   interruptible{assessed{}},
	Pending:    interruptible{pending{}},
	Approved:   interruptible{approved{}},
	Permitted:  interruptible{permitted{}},
	Dispatched: dispatched{},
	Delegated:  delegated{},
	Executed:   executed{},
	Typed:      typed{},
	Summarized: summarized{},
}

// interruptible is a stage before the call: an interruption or a failed effect ends the run, and
// nothing was sent.
type interruptible struct{ Stage }

func (s interruptible) Judge(r *Run, ev Event) Judgement {
	switch e := ev.(type) {
	case *Interrupted:
		return stopBeforeCall(e.Code, e.Reason)
	case *EffectFailed:
		return stopBeforeCall(e.Code, e.Reason)
	}
	return s.Stage.Judge(r, ev)
}

// stopBeforeCall ends a run before the call. It is blocked if it was cancelled, if its server
// announced changed tools, if too many calls of its caller wait for approvers, or if the approval
// no longer holds: that is also so if this build judges the held call otherwise than people saw,
// because no effect broke. Every other cause is a failure.
func stopBeforeCall(code policy.Code, reason string) Judgement {
	var gate policy.Gate
	switch code {
	case policy.CodeCancelled:
		gate = policy.GateRun
	case policy.CodeToolDefinitionChanged:
		gate = policy.GateAllowlist
	case policy.CodeApprovalExpired, policy.CodeApprovalMismatch, policy.CodeBundleChanged, policy.CodeBuildChanged,
		policy.CodeTooManyHeld:
		gate = policy.GateApproval
	default:
		return failRun(code, reason, NotSent)
	}
	return blockRun(policy.Verdict{
		Code:    code,
		Gate:    gate,
		Outcome: policy.Block,
		Reason:  reason,
	})
}

// blockRun ends a run because a gate denied the call. Nothing was sent.
func blockRun(v policy.Verdict) Judgement {
	return Judgement{On: Block, Fact: &StoppedFact{Effect: NotSent, Verdict: v}}
}

// failRun ends a run because an effect failed.
func failRun(code policy.Code, reason string, effect Effect) Judgement {
	if code == "" {
		code = policy.CodeEffectFailed
	}
	if !effect.isKnown() {
		effect = EffectUnknown
	}
	return Judgement{On: Fail, Fact: &StoppedFact{
		Effect: effect,
		Verdict: policy.Verdict{
			Code:    code,
			Gate:    policy.GateRun,
			Outcome: policy.Block,
			Reason:  reason,
		},
	}}
}

// failUnexpected ends the run after an event that does not answer the command.
func failUnexpected(ev Event, effect Effect) Judgement {
	return failRun(policy.CodeEffectFailed, fmt.Sprintf("The event %T does not answer the command.", ev), effect)
}
