package condition_test

import (
	"strings"
	"testing"

	"pgfsm/policy/condition"
)

func TestMilder(t *testing.T) {
	risks := []condition.Risk{{Mode: "safe"}, {Mode: "review", Score: 50}, {Mode: "danger", Score: 90}, {Mode: "danger", Score: 100}}
	for _, tc := range []struct{ name, src, low, high string }{
		{"one-mode", `risk.mode == 'review'`, "review", "danger"},
		{"one-mode-in-a-list", `risk.mode in ['review']`, "review", "danger"},
		{"mildest-mode", `risk.mode == 'safe'`, "safe", "review"},
		{"both-modes", `risk.mode in ['review', 'danger']`, "", ""},
		{"all-but-one", `risk.mode != 'safe'`, "", ""},
		{"from-a-score-on", `risk.score >= 50`, "", ""},
		{"score-on-the-other-side", `50 <= risk.score`, "", ""},
		{"up-to-a-score", `risk.score < 95`, "safe", "danger"},
		{"window", `risk.score > 40 && risk.score <= 90`, "review", "danger"},
		{"negated", `!(risk.mode == 'danger')`, "safe", "danger"},
		{"with-an-argument", `args.x == 1 && risk.mode == 'review'`, "review", "danger"},
		{"or-an-argument", `args.x == 1 || risk.mode == 'danger'`, "", ""},
		{"the-rest-covers-it", `risk.mode == 'review' || risk.mode == 'danger' && (pinned || !pinned)`, "", ""},
		{"the-rest-may-fail", `risk.mode == 'review' || risk.mode == 'danger' && args.x == 1`, "review", "danger"},
		{"choice", `pinned ? risk.mode == 'review' : true`, "review", "danger"},
		{"not-about-risk", `args.x == 1`, "", ""},
		{"not-understood", `risk.score * 2 == 100`, "", ""},
		{"constant", `true`, "", ""},
		{"too-many-tests", `risk.mode == 'review' && (` + strings.Join([]string{`args.a`, `args.b`, `args.c`, `args.d`, `args.e`, `args.f`,
			`args.g`, `args.h`}, ` == 1 || `) + ` == 1)`, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			low, high, found := read(t, tc.src).Milder(risks)
			if low.Mode != tc.low || high.Mode != tc.high || found != (tc.low != "") {
				t.Errorf("Milder(%s) = %q, %q, %t, want %q, %q", tc.src, low.Mode, high.Mode, found, tc.low, tc.high)
			}
		})
	}
}

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
						return outcome(a.Holds(score), nil)
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
				yes, err := p.True(condition.NewSubject(in))
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
