package prove_test

import (
	"fmt"
	"strings"
	"testing"

	"pgfsm/policy"
	"pgfsm/policy/prove"
	"pgfsm/policy/rules"
)

// manyPolicies returns policies about many arguments, servers and callers, as a large configuration has them.
func manyPolicies(n int) *rules.Content {
	c := &rules.Content{}
	for i := range n {
		p := rules.Policy{ID: fmt.Sprintf("p%d", i), Effect: []string{"deny", "pending", "deny", "allow", "pending"}[i%5]}
		switch i % 5 {
		case 0:
			p.When = fmt.Sprintf(`args.m == "value%d" && args.n > %d`, i, i)
		case 1:
			p.When = fmt.Sprintf(`args.m.startsWith("prefix%d/") || args.m.matches("^[a-z]{%d}$")`, i, 2+i%9)
			p.Match.Tool = fmt.Sprintf("tool%d", i%20)
		case 2:
			p.When = fmt.Sprintf(`actor.id == "agent%d" && "admin" in actor.roles`, i)
		case 3:
			p.When = fmt.Sprintf(`has(args.s) && size(args.s) > %d && args.n in [%d, %d]`, i%40, i, i+1)
		case 4:
			p.When = fmt.Sprintf(`tool_annotations.destructiveHint && args.n >= %d.5`, i)
			p.Match.Tool = "tool1*"
		}
		c.Policies = append(c.Policies, p)
	}
	c.Policies = append(c.Policies, rules.Policy{ID: "reads", Match: rules.Match{Tool: "tool1"}, Effect: rules.Allow, When: "args.n < 0"},
		rules.Policy{ID: "rest", Effect: rules.Deny})
	return c
}

func BenchmarkProve(b *testing.B) {
	for _, n := range []int{100, 1000} {
		for _, differ := range []bool{false, true} {
			schemas := make([]string, 20)
			for i := range schemas {
				schemas[i] = `{"type":"object","properties":{"m":{"type":"string"},"n":{"type":"integer"},"s":{"type":"string"}},"required":["m","n"]}`
				if differ {
					schemas[i] = strings.Replace(schemas[i], `"integer"`, fmt.Sprintf(`"integer","minimum":-%d`, i+1), 1)
					schemas[i] = strings.ReplaceAll(schemas[i], `"string"`, fmt.Sprintf(`"string","maxLength":%d`, 200+i))
				}
			}
			b.Run(fmt.Sprintf("policies-%d-tools-20-differ-%t", n, differ), func(b *testing.B) {
				f := newFixture(b, func(c *policy.Content) {
					c.Policy = manyPolicies(n)
					c.Roles = []policy.Role{{Role: "admin", Actors: []string{"agent2", "agent7"}}}
				}, schemas...)
				claims := []prove.Claim{{
					ID:     "never",
					Kind:   prove.Never,
					Effect: rules.Allow,
					When:   `args.m == "forbidden" && args.n > 1000000`,
				}}
				for b.Loop() {
					if r := f.prove(b, claims...)[0]; r.Status != prove.Proved || r.Tools != 20 {
						b.Fatalf("the claim is %s: %s", r.Status, r.Reason)
					}
				}
			})
		}
	}
}
