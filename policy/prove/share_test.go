package prove_test

import (
	"testing"

	"pgfsm/policy"
	"pgfsm/policy/prove"
	"pgfsm/policy/rules"
)

// TestShares compares how much policies allow with a policy that allows every call.
func TestShares(t *testing.T) {
	const schema = `{"type":"object","properties":{"amount":{"type":"integer","minimum":0,"maximum":1000},"urgent":{"type":"boolean"}},` +
		`"required":["amount","urgent"]}`
	open := rules.Policy{ID: "open", Effect: rules.Allow}
	older := newFixture(t, func(c *policy.Content) { c.Policy.Policies = []rules.Policy{open} }, schema)
	deny := func(when string) []rules.Policy {
		return []rules.Policy{{ID: "no", Effect: rules.Deny, When: when}, open}
	}
	for _, tt := range []struct {
		name     string
		policies []rules.Policy
		want     float64
	}{
		{"equal", []rules.Policy{open}, 1},
		{"nothing", []rules.Policy{{ID: "no", Effect: rules.Deny}}, 0},
		{"one-of-two-cells", deny("args.amount > 500"), 0.5},
		{"one-of-four-combinations", deny("args.amount > 500 && args.urgent"), 0.75},
		{"two-of-three-cells", deny("args.amount > 500 || args.amount < 10"), 1.0 / 3},
		{"a-name-that-no-condition-can-use", deny(`actor.id == "bob"`), 1.0 / 3},
		{"free", deny("args.amount % 2 == 0"), 1.0 / 3},
		{"holds", []rules.Policy{{ID: "ask", Effect: rules.Pending, Reason: "A person looks.", When: "args.urgent == true"}, open}, 0.5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, func(c *policy.Content) { c.Policy.Policies = tt.policies }, schema)
			got, before, err := prove.Shares(t.Context(), f.bundle, older.bundle, prove.Options{Catalog: f.catalog})
			if err != nil || before != 1 || max(got-tt.want, tt.want-got) > 1e-9 {
				t.Errorf("Shares() = %v, %v, %v, want %v, 1, nil", got, before, err, tt.want)
			}
		})
	}
}
