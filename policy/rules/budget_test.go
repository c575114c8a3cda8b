package rules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgfsm/policy/condition"
)

// needs returns the least budgets with which nothing is left out.
func needs(s *Set, in condition.Input) (decision, trial int64) {
	least := func(most int64, spent func(budget int64) bool) int64 {
		from := int64(0)
		for from < most {
			if mid := (from + most) / 2; spent(mid) {
				from = mid + 1
			} else {
				most = mid
			}
		}
		return from
	}
	decision = least(condition.MaxDecision, func(budget int64) bool {
		d := s.Decide(fresh(in).WithBudget(budget, condition.MaxTrial))
		return d.Spent()
	})
	trial = least(condition.MaxTrial, func(budget int64) bool {
		d := s.Decide(fresh(in).WithBudget(condition.MaxDecision, budget))
		return slices.ContainsFunc(d.Shadow, func(one ShadowDecision) bool { return one.Effect == Unjudged })
	})
	return decision, trial
}

// smallerDenies: with its whole price a call is decided as ever; with less it is denied; and shadows have no part in it.
func smallerDenies(r *rand.Rand, told *int) error {
	policies := randomPolicies(r, 8)
	s, err := Compile(Content{Policies: policies})
	if err != nil {
		return err
	}
	in := randomCall(r)
	whole := s.Decide(fresh(in))
	need, trial := needs(s, in)
	if got := spend(s, in, need, trial); !equal(got, whole) {
		return counterexample(policies, in, "with its price of %d and %d it became %+v, not %+v", need, trial, got, whole)
	}
	for budget := range need {
		if budget > 3 && budget < need-3 && r.IntN(10) > 0 {
			continue
		}
		*told++
		if got := spend(s, in, budget, trial); got.Effect != Deny || !got.Spent() || got.Policy == "" || !strings.Contains(got.Reason, got.Policy) {
			return counterexample(policies, in, "%s became %+v with %d of %d units", whole.Effect, got, budget, need)
		}
	}
	for budget := range trial {
		*told++
		got := spend(s, in, need, budget)
		recorded := got.Shadow
		if got.Shadow = whole.Shadow; !equal(got, whole) {
			return counterexample(policies, in, "%+v became %+v with %d of %d units on trial", whole, got, budget, trial)
		}
		first := slices.IndexFunc(recorded, func(one ShadowDecision) bool { return one.Effect == Unjudged })
		if first < 0 || !strings.HasPrefix(recorded[first].Failed, CodeSpent+": ") {
			return counterexample(policies, in, "with %d of %d units on trial nothing is unjudged: %+v", budget, trial, recorded)
		}
		if !slices.Equal(recorded[:first], whole.Shadow[:first]) {
			return counterexample(policies, in, "with %d of %d units on trial, %+v is recorded before, not %+v", budget, trial, recorded, whole.Shadow)
		}
	}
	return nil
}

func spend(s *Set, in condition.Input, decision, trial int64) Decision {
	return s.Decide(fresh(in).WithBudget(decision, trial))
}

func TestBudget_SmallerDenies(t *testing.T) {
	r, told := rand.New(rand.NewPCG(7, 7)), 0
	for range 500 {
		if err := smallerDenies(r, &told); err != nil {
			t.Fatal(err)
		}
	}
	if told < 500 {
		t.Errorf("only %d budgets were too small: this shows little", told)
	}
}

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
