package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/policy/visible"
)

// Kinds of change between two decisions about one call. A call has at most one of the first six, and any of the last two.
const (
	newlyAllowed     = "newly-allowed"
	newlyHeld        = "newly-held"
	newlyDenied      = "newly-denied"
	holdWeakened     = "hold-weakened"     // held by both; by the new one fewer must agree, more may, or it waits longer
	holdStrengthened = "hold-strengthened" // held by both; the opposite
	holdChanged      = "hold-changed"      // held by both; weaker and stronger at once, or other roles
	policyChanged    = "policy-changed"    // another policy decides, or another of its conditions, or one that fails
	riskChanged      = "risk-changed"      // another mode or score
)

// changeKinds are all kinds, in the order in which they are shown.
var changeKinds = []string{
	newlyAllowed, newlyHeld, newlyDenied, holdWeakened, holdStrengthened, holdChanged, policyChanged, riskChanged,
}

// newly are the kinds of another decision, by what is decided now.
var newly = map[string]string{rules.Allow: newlyAllowed, rules.Pending: newlyHeld, rules.Deny: newlyDenied}

// ruling is what was decided about a call, and how.
type ruling struct {
	Decision  string      `json:"decision"` // allow, deny or pending
	Code      policy.Code `json:"code,omitzero"`
	Policy    string      `json:"policy"`
	Condition string      `json:"condition,omitzero"`
	RiskMode  string      `json:"risk_mode"`
	RiskScore int         `json:"risk_score"`
	Approvers []string    `json:"approvers,omitzero"`
	Quorum    int         `json:"quorum,omitzero"`
	Expires   string      `json:"expires,omitzero"`
}

func rulingOf(a policy.Assessment) *ruling {
	return &ruling{
		Decision: word(a.Verdict), Code: a.Verdict.Code, Policy: a.Policy, Condition: a.Condition, RiskMode: a.Mode, RiskScore: a.Score,
		Approvers: a.Approvers, Quorum: a.Quorum, Expires: a.Expires,
	}
}

// by is which policy decided, and by which of its conditions.
func (t *ruling) by() string {
	by := fmt.Sprintf("%q", visible.Text(t.Policy))
	if t.Condition != "" {
		by += " (" + visible.Text(t.Condition) + ")"
	}
	if t.gaveUp() {
		by += " [" + visible.Text(string(t.Code)) + "]"
	}
	return by
}

// gaveUp reports whether the call is denied because it could not be judged, and not because a policy says so.
func (t *ruling) gaveUp() bool {
	return t.Decision == rules.Deny && t.Code != policy.CodePolicyDenied
}

// kindsOf are the kinds of change from one decision to another, in order; none if they are the same.
func kindsOf(before, after *ruling) (kinds []string) {
	switch {
	case before.Decision != after.Decision:
		kinds = append(kinds, newly[after.Decision])
	case after.Decision == rules.Pending:
		if kind := holdKind(before, after); kind != "" {
			kinds = append(kinds, kind)
		}
	}
	if before.Policy != after.Policy || before.Condition != after.Condition || before.gaveUp() != after.gaveUp() {
		kinds = append(kinds, policyChanged)
	}
	if before.RiskMode != after.RiskMode || before.RiskScore != after.RiskScore {
		kinds = append(kinds, riskChanged)
	}
	return kinds
}

// holdKind compares how a call is held; empty if it is held the same way.
func holdKind(before, after *ruling) string {
	// Times have one form, in which the later one is the greater text, and none has passed.
	longer, higher := cmp.Compare(after.Expires, before.Expires), cmp.Compare(after.Quorum, before.Quorum)
	more, fewer := otherApprovers(before.Approvers, after.Approvers)
	weaker, stronger := longer > 0 || higher < 0 || more, longer < 0 || higher > 0 || fewer
	switch {
	case weaker && stronger:
		return holdChanged
	case weaker:
		return holdWeakened
	case stronger:
		return holdStrengthened
	}
	return ""
}

// otherApprovers says whether roles have come that may decide about a held call, and whether some have gone. No role at all
// stands for whoever may approve, and so for more than any list.
func otherApprovers(before, after []string) (more, fewer bool) {
	if len(before) == 0 || len(after) == 0 {
		return len(after) == 0 && len(before) > 0, len(before) == 0 && len(after) > 0
	}
	lacks := func(these, those []string) bool {
		return slices.ContainsFunc(these, func(role string) bool { return !slices.Contains(those, role) })
	}
	return lacks(after, before), lacks(before, after)
}

// otherTerms shows what differs between two holds.
func otherTerms(before, after *ruling) string {
	anyone := func(roles []string) string { return cmp.Or(strings.Join(roles, ", "), "whoever may approve") }
	var parts []string
	for _, p := range []struct{ what, before, after string }{
		{"quorum", fmt.Sprint(before.Quorum), fmt.Sprint(after.Quorum)},
		{"approvers", anyone(before.Approvers), anyone(after.Approvers)},
		{"until", cmp.Or(before.Expires, "passed"), cmp.Or(after.Expires, "passed")},
	} {
		if p.before != p.after {
			parts = append(parts, fmt.Sprintf("%s %s -> %s", p.what, p.before, p.after))
		}
	}
	return visible.Text(strings.Join(parts, "; "))
}

// quieter says how two decisions differ that come to the same: by whom, and at what risk.
func quieter(before, after *ruling) (lines []string) {
	if a, b := before.by(), after.by(); a != b {
		lines = append(lines, fmt.Sprintf("by %s -> %s", a, b))
	}
	a, b := visible.Text(before.RiskMode), visible.Text(after.RiskMode)
	switch {
	case a != b:
		lines = append(lines, fmt.Sprintf("risk %s -> %s", a, b))
	case before.RiskScore != after.RiskScore:
		lines = append(lines, fmt.Sprintf("risk %s, another score", a))
	}
	return lines
}
