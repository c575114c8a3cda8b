package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/states/statestest"
)

// TestBudgetDenies: a call that spends the budget of its decision is denied, by whichever of risk rules and policies it
// is spent, in Explain as in Assess, and also where the allowlist alone would decide.
func TestBudgetDenies(t *testing.T) {
	const dear = "args.n.exists(f, f.matches('(?i)x[a-z]+y%d'))"
	ruled := func(n int) *risk.Content {
		c := &risk.Content{Modes: risk.DefaultModes(), Initial: "safe"}
		for i := range n {
			c.Rules = append(c.Rules, risk.Rule{ID: fmt.Sprintf("r%d", i), ScoreExpr: fmt.Sprintf(dear, i) + " ? 9 : 0"})
		}
		return c
	}
	policies := func(n int, mode string) *rules.Content {
		c := &rules.Content{}
		for i := range n {
			c.Policies = append(c.Policies, rules.Policy{ID: fmt.Sprintf("p%d", i), Effect: rules.Deny, Mode: mode, When: fmt.Sprintf(dear, i)})
		}
		c.Policies = append(c.Policies, rules.Policy{ID: "all", Effect: rules.Allow})
		return c
	}
	const many, half = 120, 40 // at this size of arguments about 70 spend it
	for _, tc := range []struct {
		name   string
		risk   *risk.Content
		policy *rules.Content
		code   policy.Code
		says   string
	}{
		{"risk-rules-alone", ruled(many), nil, policy.CodePolicySpent, "at the risk rule \"r"},
		{"risk-rules-before-an-allow", ruled(many), policies(0, ""), policy.CodePolicySpent, "at the risk rule \"r"},
		{"policies-alone", nil, policies(many, ""), policy.CodePolicySpent, "at the condition when of the policy \"p"},
		{"both-together", ruled(half), policies(half, ""), policy.CodePolicySpent, "at the condition when of the policy \"p"},
		{"half-of-risk-rules", ruled(half), policies(0, ""), "", ""},
		{"half-of-policies", nil, policies(half, ""), "", ""},
		{"policies-on-trial", ruled(half), policies(many, rules.Shadow), "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			content := statestest.Content()
			content.Risk, content.Policy = tc.risk, tc.policy
			b, err := policy.Compile(content)
			check.NoError(t, err)
			in := &condition.Input{Server: "s", Tool: "t", Args: []byte(`{"n":["` + strings.Repeat(`xxx","`, 26_000) + `"]}`), Now: "2026-11-21T09:00:00.000Z"}
			got := b.Assess(in)
			if got.Verdict.Code != tc.code || got.Verdict.Allows() != (tc.code == "") || got.Verdict.Holds() ||
				!strings.Contains(got.Verdict.Reason, tc.says) || tc.code != "" && !strings.Contains(got.Verdict.Reason, rules.SpentRemedy) {
				t.Errorf("Assess() = %+v, want the code %q and %q", got.Verdict, tc.code, tc.says)
			}
			if explained, _ := b.Explain(in); !cmp.Equal(explained, got) {
				t.Errorf("Explain() differs: %s", cmp.Diff(got, explained))
			}
		})
	}
}
