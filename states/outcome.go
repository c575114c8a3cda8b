package states

import "pgfsm/policy"

// Types of outcome.
const (
	TypeToolResult  = "tool_result"
	TypeSummary     = "tool_result_with_summary"
	TypeFinalAnswer = "final_answer"
	TypeBlocked     = "blocked"
	TypeFailed      = "failed"
	TypePending     = "pending"
	TypeDelegated   = "delegated"
	TypeReported    = "reported"
	TypeUnreported  = "unreported"
)

// Outcome is the result of a run. Its members are in canonical order; members that do not apply are
// empty.
type Outcome struct {
	Code   policy.Code `json:"code"`
	Effect Effect      `json:"effect"`
	Gate   policy.Gate `json:"gate"`
	Note   string      `json:"note"`
	Reason string      `json:"reason"`
	State  string      `json:"state"`
	Type   string      `json:"type"`
}

// Waits reports whether the run has not ended: it waits for approvers, or for the report of the client that makes
// the call itself.
func (o Outcome) Waits() bool { return o.Type == TypePending || o.Type == TypeDelegated }

// Outcome returns the result of the run. A run that is neither held, delegated nor ended has no type.
func (r *Run) Outcome() Outcome {
	o := Outcome{State: string(r.state)}
	if r.consumed {
		o.Effect = EffectUnknown
	} else {
		o.Effect = NotSent
	}

	switch r.state {
	case Answered:
		o.Effect, o.Note, o.Type = EffectDone, r.facts.Answered.Note, TypeToolResult
		if r.facts.Summarized != nil {
			o.Type = TypeSummary
		}
	case NeedsInfo:
		o.Type, o.Reason = TypeFinalAnswer, r.facts.Asked.Answer
	case Blocked, Failed:
		s := r.facts.Stopped
		o.Code, o.Gate, o.Reason, o.Effect = s.Verdict.Code, s.Verdict.Gate, s.Verdict.Reason, s.Effect
		o.Type = TypeBlocked
		if r.state == Failed {
			o.Type = TypeFailed
		}
	case Delegated:
		o.Effect, o.Type = EffectUnknown, TypeDelegated
	case Reported:
		o.Type, o.Effect, o.Code, o.Reason = TypeReported, EffectDone, "", "The client reported the call."
		f := r.facts.Reported
		if f.Failed {
			o.Effect, o.Code, o.Reason = EffectUnknown, policy.CodeReportedFailed, "The client reported that the call failed."
		}
		if f.Rewritten {
			o.Code, o.Reason = policy.CodeRewritten, "The client reported that the call ran with other arguments than the permitted ones."
		}
	case Unreported:
		o.Type, o.Code, o.Reason = TypeUnreported, policy.CodeUnreported, r.facts.Unreported.Reason
	case Pending:
		v := r.facts.Assessed.Verdict
		o.Type, o.Code, o.Gate, o.Reason = TypePending, policy.CodeApprovalRequired, v.Gate, v.Reason
	}

	return o
}
