package rules

import (
	"fmt"
	"strings"
	"testing"
)

// What stands below the condition for which the budget does not suffice allows nothing, whatever it is.
func TestBudget_Spent(t *testing.T) {
	const remedy = " " + SpentRemedy
	dear := "args.n.exists(x, x == 1)"
	for _, tc := range []struct {
		name      string
		policy    Policy
		condition string
	}{
		{"when-of-an-allow", Policy{ID: "it", Effect: Allow, When: dear}, "when"},
		{"when-of-a-denial", Policy{ID: "it", Effect: Deny, When: dear}, "when"},
		{"when-of-a-hold", Policy{ID: "it", Effect: Pending, When: dear}, "when"},
		{"deny", Policy{ID: "it", Effect: Allow, When: "pinned || true", Deny: dear}, "deny"},
		{"approval", Policy{ID: "it", Effect: Allow, Deny: "false", RequireApprovalIf: dear}, "require_approval_if"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := mustCompile(t, tc.policy, Policy{ID: "below", Effect: Allow})
			want := fmt.Sprintf("The budget for conditions was spent at the condition %s of the policy %q, so the call is denied.%s", tc.condition, "it", remedy)
			d := s.Decide(fresh(call(`{"n":[2]}`)).WithBudget(5, 0))
			if d.Effect != Deny || d.Policy != "it" || d.Condition != tc.condition || !d.Spent() || d.Reason != want ||
				d.Failed != "policy_budget_spent: the budget of the decision for conditions is spent" {
				t.Errorf("Decide() = %+v, want it denied with %q", d, want)
			}
		})
	}
}

// dearPolicies are n policies with a loop and a pattern each, none of which is true, and one that allows.
func dearPolicies(n int, mode string) []Policy {
	policies := make([]Policy, n, n+1)
	for i := range policies {
		policies[i] = Policy{ID: fmt.Sprint(i), Effect: Deny, Mode: mode, When: fmt.Sprintf("args.n.exists(f, f.matches('(?i)x[a-z]+%d'))", i)}
	}
	return append(policies, Policy{ID: "last", Effect: Allow})
}

// Many dear conditions over large arguments are denied, and are no burden when they are on trial.
func TestBudget_OfManyDearPolicies(t *testing.T) {
	large := call(`{"n":["` + strings.Repeat(`xxx","`, 6500) + `"]}`)
	enforced := mustCompile(t, dearPolicies(300, Enforce)...)
	if d := enforced.Decide(fresh(large)); d.Effect != Deny || !d.Spent() {
		t.Errorf("Decide() of 300 dear policies = %+v, want the budget to be spent", d)
	}
	if d := enforced.Decide(fresh(call(`{"n":["xxx"]}`))); d.Effect != Allow {
		t.Errorf("Decide() of the same with small arguments = %+v, want it allowed", d)
	}
	d := mustCompile(t, dearPolicies(300, Shadow)...).Decide(fresh(large))
	if d.Effect != Allow || d.Policy != "last" || len(d.Shadow) < 200 || d.Shadow[0].Effect != Unjudged || d.Shadow[0].Condition != "when" {
		t.Errorf("Decide() beside 300 dear policies on trial = %s by %q, %d on trial", d.Effect, d.Policy, len(d.Shadow))
	}
}
