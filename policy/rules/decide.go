package rules

import (
	"fmt"
	"slices"
	"strings"

	"pgfsm/internal/visible"
	"pgfsm/policy/condition"
)

// A Decision is the policies' decision about one call, with its reason. The zero Decision allows
// nothing.
type Decision struct {
	// Approvers lists the actors and roles that may decide about a held call. If it is empty, the
	// approval gate decides who may.
	Approvers []string `json:"approvers"`
	// Condition is the key whose condition decided: "deny", "require_approval_if", or "when" if
	// that failed. Where the effect decided, or nothing matched, it is empty.
	Condition string `json:"condition"`
	Effect    string `json:"effect"`     // allow, deny or pending; everything else denies
	Expires   int64  `json:"expires_ms"` // for a held call, the time that it waits; 0 otherwise
	// Failed is [CodeFailed] or [CodeSpent], a colon and why, if the call is denied because
	// Condition could not be judged.
	Failed string `json:"failed"`
	// For a held call, the greatest age of the approver's sign-in at a vote; 0: any.
	Fresh int64 `json:"fresh_ms,omitzero"`
	// The id of the policy that decided; "" if none matched.
	Policy string `json:"policy"`
	// For a held call, the number of people who must approve; 0 otherwise.
	Quorum int    `json:"quorum"`
	Reason string `json:"reason"` // a sentence for a person; never empty
	// The decisions that policies in shadow would have made, in their order.
	Shadow []ShadowDecision `json:"shadow"`
}

// A ShadowDecision is the decision that a policy in shadow would have made as the only enforced
// policy. Its members mean what they mean in [Decision]. If the budget for policies on trial was
// spent, Effect is [Unjudged] and Failed begins with [CodeSpent]: it is unknown whether the policy
// matches.
type ShadowDecision struct {
	Condition string `json:"condition"`
	Effect    string `json:"effect"`
	Failed    string `json:"failed"`
	Policy    string `json:"policy"`
}

// noMatch is the reason of a call that no policy matches.
const noMatch = "No policy matches the call, and what no policy allows is denied."

// SpentRemedy is the remedy for [CodeSpent].
const SpentRemedy = "Narrow the globs of policies and risk rules with loops or patterns, or send smaller arguments."

// maxFailed is the longest recorded failure, in bytes.
const maxFailed = 256

// Decide judges a call by the first policy that matches it. It is safe for concurrent use, with a
// Subject each. Without a Subject the call is denied.
func (s *Set) Decide(sub *condition.Subject) Decision {
	return s.decideObserved(sub, func(*policy, *policyResult) {})
}

// decideObserved tells observe each policy that it considers, with its verdict; nil if the globs do
// not match.
func (s *Set) decideObserved(sub *condition.Subject, observe func(*policy, *policyResult)) Decision {
	d := Decision{Effect: Deny, Reason: noMatch}
	if s == nil || sub == nil {
		return d
	}

	input := sub.Input()
	for i := range s.policies {
		p := &s.policies[i]
		if !p.globs.Fit(&input) {
			observe(p, nil)
			continue
		}
		v := p.judgeCall(sub)
		observe(p, &v)
		switch {
		case v.matched && p.shadow:
			d.Shadow = append(d.Shadow, ShadowDecision{v.condition, v.effect, v.failure(), p.id})
		case v.matched:
			p.writeDecision(&d, v)
			return d
		}
	}

	return d
}

// A policyResult is the decision of one policy, without the others.
type policyResult struct {
	matched   bool
	effect    string
	condition string // the key that decided, or that failed
	err       error
}

// isSpent reports whether the budget ended before the condition had an answer.
func (v *policyResult) isSpent() bool { return v.err == condition.ErrSpent }

// Spent reports whether the call is denied because its budget for conditions was spent.
func (d *Decision) Spent() bool { return strings.HasPrefix(d.Failed, CodeSpent+":") }

// failure is [Decision].Failed.
func (v *policyResult) failure() string {
	code := CodeFailed
	switch {
	case v.err == nil:
		return ""
	case v.isSpent():
		code = CodeSpent
	}
	return code + ": " + visible.Clip(v.err.Error(), maxFailed)
}

// judgeCall evaluates the conditions of a policy whose globs match. Policies in shadow have a
// separate budget.
func (p *policy) judgeCall(sub *condition.Subject) policyResult {
	if !p.shadow {
		return p.evaluate(sub)
	}
	sub.OnTrial(true)
	v := p.evaluate(sub)
	sub.OnTrial(false)
	if v.isSpent() {
		v.effect = Unjudged
	}
	return v
}

func (p *policy) evaluate(sub *condition.Subject) policyResult {
	if p.when != nil {
		yes, err := p.when.True(sub)
		if err != nil { // a policy that can only allow does not match; err says why
			v := policyResult{matched: p.strict, effect: Deny, condition: "when", err: err}
			v.matched = v.matched || v.isSpent() // no policy below may decide without this one
			return v
		}
		if !yes {
			return policyResult{condition: "when"}
		}
	}

	if p.deny != nil {
		if yes, err := p.deny.True(sub); yes || err != nil {
			return policyResult{matched: true, effect: Deny, condition: "deny", err: err}
		}
	}

	// deny comes before require_approval_if: approvers are not asked about a denied call.
	if p.ask != nil {
		switch yes, err := p.ask.True(sub); {
		case err != nil:
			return policyResult{
				matched:   true,
				effect:    Deny,
				condition: "require_approval_if",
				err:       err,
			}
		case yes:
			return policyResult{matched: true, effect: Pending, condition: "require_approval_if"}
		}
	}

	return policyResult{matched: true, effect: p.effect}
}

// writeDecision writes the policy's decision into d, beside the recorded shadows.
func (p *policy) writeDecision(d *Decision, v policyResult) {
	d.Effect, d.Policy, d.Condition, d.Failed = v.effect, p.id, v.condition, v.failure()
	if v.effect == Pending {
		d.Approvers, d.Quorum, d.Expires, d.Fresh = slices.Clone(p.approvers), p.quorum, p.expires, p.fresh
	}
	switch {
	case v.isSpent():
		d.Reason = fmt.Sprintf("The budget for conditions was spent at the condition %s of the policy %q, so the call is denied. %s",
			v.condition, p.id, SpentRemedy)
	case v.err != nil:
		d.Reason = fmt.Sprintf("The condition %s of the policy %q failed, so the call is denied.", v.condition, p.id)
	case p.reason != "":
		d.Reason = p.reason
	default:
		d.Reason = usualReason(p.id, v.effect)
	}
}

// usualReason is the reason of a policy without one.
func usualReason(id, effect string) string {
	switch effect {
	case Allow:
		return fmt.Sprintf("The policy %q allows the call.", id)
	case Pending:
		return fmt.Sprintf("The policy %q holds the call for approvers.", id)
	}
	return fmt.Sprintf("The policy %q denies the call.", id)
}
