package ruling_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/policy/ruling"
)

// TestChanges: what of a hold is weaker, and what is seen besides.
func TestChanges(t *testing.T) {
	base := ruling.Ruling{
		Decision: rules.Pending, Code: policy.CodeApprovalRequired, Policy: "a", Condition: "require_approval_if", RiskMode: "review",
		RiskScore: 50, Approvers: []string{"owners", "leads"}, Quorum: 2, Expires: "2026-11-21T09:00:00.000Z", Fresh: 300_000,
	}
	for _, tt := range []struct {
		name   string
		change func(r *ruling.Ruling)
		there  []string // from base to the changed one
		back   []string
	}{
		{"nothing", func(*ruling.Ruling) {}, nil, nil},
		{"order-of-approvers", func(r *ruling.Ruling) { r.Approvers = []string{"leads", "owners"} }, nil, nil},
		{"lower-quorum", func(r *ruling.Ruling) { r.Quorum = 1 }, []string{ruling.HoldWeakened}, []string{ruling.HoldStrengthened}},
		{"a-role-more", func(r *ruling.Ruling) { r.Approvers = []string{"leads", "owners", "all"} }, []string{ruling.HoldWeakened}, []string{ruling.HoldStrengthened}},
		{"any-role", func(r *ruling.Ruling) { r.Approvers = nil }, []string{ruling.HoldWeakened}, []string{ruling.HoldStrengthened}},
		{"passed-at-once", func(r *ruling.Ruling) { r.Expires = "" }, []string{ruling.HoldStrengthened}, []string{ruling.HoldWeakened}},
		{"older-sign-in", func(r *ruling.Ruling) { r.Fresh = 301_000 }, []string{ruling.HoldWeakened}, []string{ruling.HoldStrengthened}},
		{"another-role", func(r *ruling.Ruling) { r.Approvers = []string{"owners", "all"} }, []string{ruling.HoldChanged}, []string{ruling.HoldChanged}},
		{"all-weaker", func(r *ruling.Ruling) { r.Quorum, r.Expires, r.Approvers = 1, "2026-11-22T08:00:00.000Z", nil },
			[]string{ruling.HoldWeakened}, []string{ruling.HoldStrengthened}},
		{"another-policy", func(r *ruling.Ruling) { r.Policy = "b" }, []string{ruling.PolicyChanged}, []string{ruling.PolicyChanged}},
		{"another-condition", func(r *ruling.Ruling) { r.Condition = "" }, []string{ruling.PolicyChanged}, []string{ruling.PolicyChanged}},
		{"another-mode", func(r *ruling.Ruling) { r.RiskMode = "danger" }, []string{ruling.RiskChanged}, []string{ruling.RiskChanged}},
		{"all-of-it", func(r *ruling.Ruling) { r.Quorum, r.Policy, r.RiskScore = 3, "b", 51 },
			[]string{ruling.HoldStrengthened, ruling.PolicyChanged, ruling.RiskChanged}, []string{ruling.HoldWeakened, ruling.PolicyChanged, ruling.RiskChanged}},
		{"allowed", func(r *ruling.Ruling) {
			*r = ruling.Ruling{Decision: rules.Allow, Policy: "a", RiskMode: "review", RiskScore: 50}
		},
			[]string{ruling.NewlyAllowed, ruling.PolicyChanged}, []string{ruling.NewlyHeld, ruling.PolicyChanged}},
		{"denied-by-the-same", func(r *ruling.Ruling) { r.Decision, r.Code = rules.Deny, policy.CodePolicyDenied }, []string{ruling.NewlyDenied}, []string{ruling.NewlyHeld}},
		{"denied-for-it-failed", func(r *ruling.Ruling) { r.Decision, r.Code = rules.Deny, policy.CodePolicyFailed },
			[]string{ruling.NewlyDenied, ruling.PolicyChanged}, []string{ruling.NewlyHeld, ruling.PolicyChanged}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			other := base
			tt.change(&other)
			if d := cmp.Diff(tt.there, ruling.Changes(&base, &other)); d != "" {
				t.Errorf("Changes(base, other) (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.back, ruling.Changes(&other, &base)); d != "" {
				t.Errorf("Changes(other, base) (-want +got):\n%s", d)
			}
		})
	}
	denied, failed := ruling.Ruling{Decision: rules.Deny, Code: policy.CodePolicyDenied}, ruling.Ruling{Decision: rules.Deny, Code: policy.CodePolicyFailed}
	if got := ruling.Changes(&denied, &failed); !slices.Equal(got, []string{ruling.PolicyChanged}) {
		t.Errorf("kinds of a denial that becomes a failure = %q, want %s", got, ruling.PolicyChanged)
	}
}
