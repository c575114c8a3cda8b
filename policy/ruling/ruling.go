// Package ruling computes the decision of a policy about a recorded call, and compares it with
// another policy's decision.
package ruling

import (
	"cmp"
	"math"
	"slices"

	"pgfsm/policy"
	"pgfsm/policy/rules"
)

// Word is a verdict in one word.
func Word(v policy.Verdict) string {
	switch {
	case v.Allows():
		return rules.Allow
	case v.Holds():
		return rules.Pending
	}
	return rules.Deny
}

// Kinds of change between two decisions about one call. A call has at most one of the first six,
// and any of the last two.
const (
	NewlyAllowed = "newly-allowed"
	NewlyHeld    = "newly-held"
	NewlyDenied  = "newly-denied"
	// Held by both; with the new one fewer people must approve, more may, the call waits longer, or
	// sign-ins may be older.
	HoldWeakened     = "hold-weakened"
	HoldStrengthened = "hold-strengthened" // held by both; the opposite
	HoldChanged      = "hold-changed"      // held by both; both at once, or other roles
	// Another policy decides, or another of its conditions, or one that fails.
	PolicyChanged = "policy-changed"
	RiskChanged   = "risk-changed" // another mode or score
)

// Kinds returns all kinds of change, in the order in which they are shown.
func Kinds() []string {
	return []string{NewlyAllowed, NewlyHeld, NewlyDenied, HoldWeakened, HoldStrengthened, HoldChanged, PolicyChanged,
		RiskChanged}
}

// newly holds the kinds of another decision, by the current decision.
var newly = map[string]string{rules.Allow: NewlyAllowed, rules.Pending: NewlyHeld, rules.Deny: NewlyDenied}

// A Ruling holds the decision about a call, and the way to it.
type Ruling struct {
	Decision  string      `json:"decision"` // allow, deny or pending
	Code      policy.Code `json:"code,omitzero"`
	Policy    string      `json:"policy"`
	Condition string      `json:"condition,omitzero"`
	RiskMode  string      `json:"risk_mode"`
	RiskScore int         `json:"risk_score"`
	Approvers []string    `json:"approvers,omitzero"`
	Quorum    int         `json:"quorum,omitzero"`
	Expires   string      `json:"expires,omitzero"`
	Fresh     int64       `json:"fresh_ms,omitzero"`
	// What conditions read of the identity or the session and the run did not record: the real
	// decision may differ.
	Unknown []string `json:"unknown,omitempty"`
}

// FromAssessment returns the ruling of an assessment.
func FromAssessment(a policy.Assessment) *Ruling {
	return &Ruling{
		Decision:  Word(a.Verdict),
		Code:      a.Verdict.Code,
		Policy:    a.Policy,
		Condition: a.Condition,
		RiskMode:  a.Mode,
		RiskScore: a.Score,
		Approvers: a.Approvers,
		Quorum:    a.Quorum,
		Expires:   a.Expires,
		Fresh:     a.Fresh,
	}
}

// GaveUp reports whether the call is denied because it could not be judged, and not because a
// policy says so.
func (t *Ruling) GaveUp() bool {
	return t.Decision == rules.Deny && t.Code != policy.CodePolicyDenied
}

// Changes returns the kinds of change from one ruling to another, in order; none if they are the
// same.
func Changes(before, after *Ruling) (kinds []string) {
	switch {
	case before.Decision != after.Decision:
		kinds = append(kinds, newly[after.Decision])
	case after.Decision == rules.Pending:
		if kind := holdKind(before, after); kind != "" {
			kinds = append(kinds, kind)
		}
	}
	if before.Policy != after.Policy || before.Condition != after.Condition || before.GaveUp() != after.GaveUp() {
		kinds = append(kinds, PolicyChanged)
	}
	if before.RiskMode != after.RiskMode || before.RiskScore != after.RiskScore {
		kinds = append(kinds, RiskChanged)
	}
	return kinds
}

// holdKind compares the ways in which a call is held; empty if they are the same.
func holdKind(before, after *Ruling) string {
	// Times have one form, in which the later one is the greater text, and none has passed.
	longer, higher := cmp.Compare(after.Expires, before.Expires), cmp.Compare(after.Quorum, before.Quorum)
	more, fewer := otherApprovers(before.Approvers, after.Approvers)
	older := cmp.Compare(signedIn(after), signedIn(before))
	weaker, stronger := longer > 0 || higher < 0 || more || older > 0, longer < 0 || higher > 0 || fewer || older < 0
	switch {
	case weaker && stronger:
		return HoldChanged
	case weaker:
		return HoldWeakened
	case stronger:
		return HoldStrengthened
	}
	return ""
}

// signedIn returns the greatest age of an approver's sign-in at a vote. Without a limit it is
// longer than any.
func signedIn(t *Ruling) int64 {
	if t.Fresh == 0 {
		return math.MaxInt64
	}
	return t.Fresh
}

// otherApprovers says whether roles that may decide were added, and whether some were removed. No
// roles means any approver, which is more than any list.
func otherApprovers(before, after []string) (more, fewer bool) {
	if len(before) == 0 || len(after) == 0 {
		return len(after) == 0 && len(before) > 0, len(before) == 0 && len(after) > 0
	}
	lacks := func(these, those []string) bool {
		return slices.ContainsFunc(these, func(role string) bool { return !slices.Contains(those, role) })
	}
	return lacks(after, before), lacks(before, after)
}
