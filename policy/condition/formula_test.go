package condition_test

import (
	"strings"
	"testing"

	"pgfsm/policy/condition"
)

// TestFormulaHolds: taken apart and put together again, an expression comes to what CEL says of it.
func TestFormulaHolds(t *testing.T) {
	for _, tc := range outcomes {
		if strings.HasPrefix(tc.name, "number") {
			continue
		}
		p, r := mustBool(t, policyEnv(t), tc.src), read(t, tc.src)
		for _, env := range []string{"", "a", "b", "prod", strings.Repeat("x", condition.MaxName+1)} {
			for _, score := range []int{0, 1, 48, 49, 50, 999, 1000} {
				in := call()
				in.Env, in.Tool, in.Risk.Score, in.Pinned = env, env, score, score%2 == 0
				in.Args = []byte([]string{`{}`, `{"x":1,"xs":[3]}`, `{"x":"a"}`}[score%3])
				got := r.Formula().Outcomes(func(a *condition.Atom) condition.Outcomes {
					switch {
					case a.Name == "risk.score":
						return a.AtRisk("", score)
					case (a.Name == "env" || a.Name == "tool") && len(env) <= condition.MaxName:
						yes := false
						for _, texts := range a.Texts {
							yes = yes || texts.Has(env)
						}
						return outcome(yes, nil)
					case a.Name == "env" || a.Name == "tool":
						return canFail
					case a.Name == "pinned":
						return outcome(in.Pinned, nil)
					}
					return anything
				})
				yes, err := p.True(condition.NewSubject(in).WithBudget(condition.MaxDecision/100, 0))
				if want := outcome(yes, err); got&want == 0 {
					t.Errorf("the formula of %s comes to %03b where it is %03b (env %.8q, score %d)", tc.src, got, want, env, score)
				}
			}
		}
	}
}

func outcome(yes bool, err error) condition.Outcomes {
	switch {
	case err != nil:
		return canFail
	case yes:
		return canTrue
	}
	return canFalse
}
