package lint_test

import (
	"fmt"
	"testing"

	"pgfsm/policy"
	"pgfsm/policy/lint"
	"pgfsm/policy/rules"
)

// many are as many policies as may be: named tools, groups, and conditions, none of them in the way of another.
func many() *policy.Content {
	c := &policy.Content{Env: "prod", Policy: &rules.Content{}}
	for i := range rules.MaxPolicies {
		p := rules.Policy{ID: fmt.Sprint(i), Effect: rules.Deny, Match: rules.Match{Server: fmt.Sprintf("s%d-*", i%40), Tool: fmt.Sprintf("tool_%d", i)}}
		switch i % 5 {
		case 1:
			p.Match.Tool = fmt.Sprintf("*_%d?", i)
		case 2:
			p.When = fmt.Sprintf("args.n > %d", i%100)
		case 3:
			p.Match.Env = "pro?"
		}
		c.Policy.Policies = append(c.Policy.Policies, p)
	}
	return c
}

func BenchmarkManyPolicies(b *testing.B) {
	c := many()
	for b.Loop() {
		lint.Lint(c, nil)
	}
}
