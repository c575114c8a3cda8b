package policy

import (
	"fmt"
	"strconv"

	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// Question is the input of risk rules and policies. Only Arguments come from the agent.
type Question struct {
	Server    string
	Tool      *Tool
	Env       string
	Actor     string
	Identity  *Identity
	Arguments []byte
	Now       string             // RFC 3339; the time of the request or of the decision
	History   []condition.Answer // the answers about earlier calls
	Session   *Session           // the client's session; nil: none is known
	Origins   *Origins           // where the arguments come from; nil: that was not read
	InSession bool               // earlier prompts or calls belong together with the call: see Origins
}

// A Session says in which session of a client a call was requested.
type Session = condition.Session

// Origins say where the arguments of a call come from, and what may be in its session.
type Origins = condition.Origins

// Assessment is the risk of a call and the policy's decision about it.
type Assessment struct {
	// Roles that may decide about a held call; none: any approver.
	Approvers []string `json:"approvers"`
	// The condition of the policy that decided, if one did.
	Condition string `json:"condition"`
	// For a held call, the end of the time for votes in [TimeForm]; an empty time is in the past.
	Expires string `json:"expires"`
	// For a held call, the milliseconds before a vote in which its approver must have signed in at
	// the console; 0: any vote counts.
	Fresh int64 `json:"fresh_ms,omitzero"`
	// The risk mode; "unrated" where no risk rules are configured.
	Mode   string `json:"mode"`
	Policy string `json:"policy"` // the policy that decided; empty if none did
	// For a held call, the number of people who must approve.
	Quorum int `json:"quorum"`
	// The effects of the risk rules that matched, in order.
	Risk  []risk.Contribution `json:"risk"`
	Score int                 `json:"score"` // 0 where no risk rules are configured
	// The decisions that policies in shadow would have made.
	Shadow  []rules.ShadowDecision `json:"shadow"`
	Verdict Verdict                `json:"verdict"`
}

// Unrated is the risk mode of every call where no risk rules are configured.
const Unrated = "unrated"

// A Decider decides whether a validated, authorized call is allowed, blocked or held.
type Decider interface {
	Decide(Question) Assessment
}

// WithDecider returns a bundle that asks d instead of its risk rules and policies.
func (b *Bundle) WithDecider(d Decider) *Bundle {
	return &Bundle{
		content:      b.content,
		canonical:    b.canonical,
		text:         b.text,
		digest:       b.digest,
		servers:      b.servers,
		screens:      b.screens,
		allow:        b.allow,
		pins:         b.pins,
		grants:       b.grants,
		inputs:       b.inputs,
		outputs:      b.outputs,
		schemaLimits: b.schemaLimits,
		risk:         b.risk,
		rules:        b.rules,
		origins:      b.origins,
		items:        b.items,
		reads:        b.reads,
		same:         b.same,
		decider:      d,
	}
}

// Decide assesses a call: its risk, and the decision of the first policy that matches. Without
// policies the call is allowed, because the allowlist has already decided.
func (b *Bundle) Decide(q Question) Assessment {
	a := Assessment{Mode: Unrated}
	switch {
	case q.Tool == nil || !q.Tool.Effective():
		a.Verdict = blockedBy(GatePolicy, CodePolicyDenied, "There is no tool to decide about.")
		return a
	case b.decider != nil:
		return b.decider.Decide(q)
	}
	a, _ = b.assessSubject(condition.NewSubject(b.conditionInput(q)), false)
	return a
}

// Assess judges an input as Decide does, for callers that only show the decision. The risk rules
// set the input's risk, if there are risk rules.
func (b *Bundle) Assess(in *condition.Input) Assessment {
	return b.AssessSubject(condition.NewSubject(in))
}

// AssessSubject is Assess for callers that then ask the subject what its conditions read.
func (b *Bundle) AssessSubject(subject *condition.Subject) Assessment {
	a, _ := b.assessSubject(subject, false)
	return a
}

// Explain is Assess with every policy that was considered, and why it did or did not match.
func (b *Bundle) Explain(in *condition.Input) (Assessment, []rules.Considered) {
	return b.assessSubject(condition.NewSubject(in), true)
}

func (b *Bundle) assessSubject(subject *condition.Subject, explain bool) (a Assessment, considered []rules.Considered) {
	a = Assessment{Mode: Unrated}
	if b.risk == nil && b.rules == nil {
		a.Verdict = allowedBy(GatePolicy, "No policy is configured; the allowlist decides.")
		return a, nil
	}

	input := subject.Input()
	// Without risk rules, an input may carry a risk: in the tests of a policy.
	if b.risk != nil {
		r := b.risk.Judge(subject)
		a.Mode, a.Score, a.Risk = r.Mode, r.Score, r.Contributions
		if r.Spent != "" {
			a.Verdict = blockedBy(GatePolicy, CodePolicySpent, r.Spent+" "+rules.SpentRemedy)
			return a, nil
		}
		subject = subject.WithRisk(r.Risk())
	} else if input.Risk.Mode != "" {
		a.Mode, a.Score = input.Risk.Mode, input.Risk.Score
	}

	if b.rules == nil {
		a.Verdict = allowedBy(GatePolicy,
			fmt.Sprintf("Risk %s, score %d. No policy is configured; the allowlist decides.", a.Mode, a.Score))
		return a, nil
	}

	var d rules.Decision
	if explain {
		d, considered = b.rules.Explain(subject)
	} else {
		d = b.rules.Decide(subject)
	}

	a.setVerdict(d, input.Now)
	return a, considered
}

// WithoutRisk returns a bundle with the same policies and no risk rules, so that the input can
// carry a risk.
func (b *Bundle) WithoutRisk() *Bundle {
	c := b.WithDecider(b.decider)
	c.risk = nil
	return c
}

// conditionInput returns the input of conditions.
func (b *Bundle) conditionInput(q Question) *condition.Input {
	return &condition.Input{
		Server:      q.Server,
		Tool:        q.Tool.Name,
		Env:         q.Env,
		Args:        q.Arguments,
		Pinned:      q.Tool.Pin != "",
		Now:         q.Now,
		History:     q.History,
		Session:     q.Session,
		Origins:     q.Origins,
		Actor:       b.ConditionActor(q.Actor, q.Identity),
		Annotations: condition.Annotations(q.Tool.Annotations),
	}
}

// setVerdict converts the policies' decision into a verdict. Every word but two denies.
func (a *Assessment) setVerdict(d rules.Decision, now string) {
	a.Policy, a.Condition, a.Shadow = d.Policy, d.Condition, d.Shadow
	reason := d.Reason
	if d.Policy != "" {
		reason = "Policy " + strconv.Quote(d.Policy) + ": " + d.Reason
	}

	switch {
	case d.Spent():
		a.Verdict = blockedBy(GatePolicy, CodePolicySpent, reason)
	case d.Failed != "":
		a.Verdict = blockedBy(GatePolicy, CodePolicyFailed, reason+" ("+d.Failed+")")
	case d.Effect == rules.Allow:
		a.Verdict = allowedBy(GatePolicy, reason)
	case d.Effect == rules.Pending:
		a.Approvers, a.Quorum, a.Expires, a.Fresh = d.Approvers, d.Quorum, expiryAfter(now, d.Expires), d.Fresh
		a.Verdict = Verdict{
			Code:    CodeApprovalRequired,
			Gate:    GatePolicy,
			Outcome: Hold,
			Reason:  reason,
		}
	default:
		a.Verdict = blockedBy(GatePolicy, CodePolicyDenied, reason)
	}
}

// expiryAfter adds milliseconds to a time in [TimeForm]. It returns an empty time, which as an expiry
// is in the past, for another form and beyond four-digit years.
func expiryAfter(now string, ms int64) string {
	if ms <= 0 {
		return ""
	}
	return condition.Later(now, ms)
}

// Unapprovable refuses a held call that carries more than its arguments, because approvers see only
// the arguments.
func Unapprovable() Verdict {
	return blockedBy(GatePolicy, CodeRoundUnapprovable,
		"The policy holds the call, but the call contains answers to the server's questions, which approvers cannot see.")
}
