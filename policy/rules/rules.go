package rules

import "pgfsm/policy/condition"

// Effects, which are also the decisions. Every other word denies.
const (
	Allow   = "allow"
	Deny    = "deny"
	Pending = "pending" // approvers have to decide
)

// Modes of a policy. The empty mode enforces.
const (
	Enforce = "enforce"
	Shadow  = "shadow" // judged and recorded, without effect
)

// Unjudged is the effect of a shadow policy if the budget was spent. It is no decision.
const Unjudged = "unjudged"

// One of these begins [Decision].Failed.
const (
	CodeFailed = "policy_failed" // a condition could not be judged, so the call is denied
	// The conditions of the decision cost more than it has, so the call is denied.
	CodeSpent = "policy_budget_spent"
)

// Limits of policies.
const (
	MaxPolicies   = 10_000
	MaxShadow     = 1000    // policies with mode shadow
	MaxConditions = 1 << 20 // bytes of all conditions together, each text counted once

	DefaultQuorum        = 1
	DefaultExpires int64 = 24 * 60 * 60 * 1000 // milliseconds
)

// Content holds the policies of policy.yaml, in the operator's order.
type Content struct {
	Policies []Policy `json:"policies"`
}

// A Policy is one entry of the list. Empty means not written; the package comment says what that
// means.
type Policy struct {
	ID                string `json:"id"` // unique and visible
	Match             Match  `json:"match"`
	When              string `json:"when"`                // CEL; empty is true
	Effect            string `json:"effect"`              // allow, deny or pending
	Deny              string `json:"deny"`                // CEL; only with effect allow
	RequireApprovalIf string `json:"require_approval_if"` // CEL; only with effect allow
	Reason            string `json:"reason"`              // a sentence for a person
	Mode              string `json:"mode"`                // enforce (or empty) or shadow
	// The actors and roles that may decide; only where the policy can hold.
	Approvers []string `json:"approvers"`
	// The number of people who must agree, likewise; 0 is [DefaultQuorum].
	Quorum int `json:"quorum"`
	// The time that a call waits, likewise; 0 is [DefaultExpires].
	Expires int64 `json:"expires_ms"`
	// The greatest age of the approver's sign-in at a vote, likewise; 0: any.
	Fresh int64 `json:"fresh_ms,omitzero"`
}

// canHold reports whether the policy can hold a call.
func (p *Policy) canHold() bool {
	return p.Effect == Pending || p.Effect == Allow && p.RequireApprovalIf != ""
}

// Match has the globs of a policy. An empty one is `*`.
type Match = condition.Match

// A Set is a compiled list of policies. It is immutable and safe for concurrent use. The zero Set,
// and nil, deny everything.
type Set struct {
	policies []policy
	programs condition.Programs
}

// Programs returns the conditions of all policies.
func (s *Set) Programs() condition.Programs {
	if s == nil {
		return nil
	}
	return s.programs
}
