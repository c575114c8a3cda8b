package condition_test

import (
	"testing"

	"pgfsm/policy/condition"
)

var benched = []struct{ name, src string }{
	{"name", `env == 'prod'`},
	{"risk", `risk.score >= 50 && env == 'prod'`},
	{"args", `args.amount > 1000 && env == 'prod'`},
	{"regex", `args.text.matches('(?i)^ssn')`},
	{"loop", `args.list.exists(x, x == 'B')`},
}

// BenchmarkFresh judges each condition with a Subject of its own: the arguments are decoded each time they are named.
func BenchmarkFresh(b *testing.B) {
	for _, bc := range benched {
		b.Run(bc.name, func(b *testing.B) {
			p, in := mustBool(b, policyEnv(b), bc.src), call()
			b.ReportAllocs()
			for b.Loop() {
				p.True(condition.NewSubject(in))
			}
		})
	}
}
