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

// BenchmarkReused judges each condition with one Subject.
func BenchmarkReused(b *testing.B) {
	for _, bc := range benched {
		b.Run(bc.name, func(b *testing.B) {
			p, s := mustBool(b, policyEnv(b), bc.src), condition.NewSubject(call())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.True(s.WithBudget(condition.MaxDecision, condition.MaxTrial)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestAllocations: a condition over names allocates the Subject, its cost tracker and what it names; the second time only
// what CEL reports of an evaluation.
func TestAllocations(t *testing.T) {
	e, in := policyEnv(t), call()
	for _, tc := range []struct {
		name, src   string
		fresh, next float64
	}{
		{"flag", `pinned`, 3, 1}, {"name", `env == 'prod'`, 4, 1}, {"risk", `risk.score >= 50 && env == 'prod'`, 4, 1},
		{"args", `args.amount > 1000 && env == 'prod'`, 160, 1},
	} {
		p := mustBool(t, e, tc.src)
		if n := testing.AllocsPerRun(100, func() { p.True(condition.NewSubject(in)) }); n > tc.fresh {
			t.Errorf("%s: True() of a new subject allocates %v times, want at most %v", tc.name, n, tc.fresh)
		}
		s := condition.NewSubject(in)
		if n := testing.AllocsPerRun(100, func() { p.True(s) }); n > tc.next {
			t.Errorf("%s: True() of a known subject allocates %v times, want %v", tc.name, n, tc.next)
		}
	}
}
