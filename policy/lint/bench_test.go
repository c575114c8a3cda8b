package lint_test

import (
	"fmt"
	"testing"

	"pgfsm/policy"
	"pgfsm/policy/lint"
	"pgfsm/policy/rules"
)

// BenchmarkLint lints policies about many tools, arguments and callers.
func BenchmarkLint(b *testing.B) {
	for _, n := range []int{20, 100, 300} {
		b.Run(fmt.Sprint("policies-", n), func(b *testing.B) {
			c := config(func(c *policy.Content) {
				c.Policy = &rules.Content{}
				for i := range n {
					p := rules.Policy{ID: fmt.Sprint("p", i), Effect: []string{"deny", "pending", "deny", "allow"}[i%4]}
					switch i % 4 {
					case 0:
						p.When = fmt.Sprintf(`args.m == "value%d" && args.n > %d`, i, i)
					case 1:
						p.When, p.Match.Tool = fmt.Sprintf(`args.m.startsWith("prefix%d/")`, i), fmt.Sprintf("tool%d", i%20)
					case 2:
						p.When = fmt.Sprintf(`actor.id == "agent%d" && "lead" in actor.roles`, i)
					case 3:
						p.When, p.Match.Tool = fmt.Sprintf(`risk.mode != "danger" && args.n >= %d.5`, i), "tool1*"
					}
					c.Policy.Policies = append(c.Policy.Policies, p)
				}
				c.Policy.Policies = append(c.Policy.Policies, rules.Policy{ID: "rest", Effect: rules.Deny})
			})
			for b.Loop() {
				lint.Lint(c, nil)
			}
		})
	}
}
