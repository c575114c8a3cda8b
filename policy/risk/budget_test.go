package risk_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
)

// judge assesses with a budget.
func judge(m *risk.Model, in *condition.Input, budget int64) risk.Assessment {
	return m.Judge(condition.NewSubject(in).WithBudget(budget, 0))
}

// need returns the least budget with which nothing is left out.
func need(m *risk.Model, in *condition.Input) int64 {
	from, to := int64(0), int64(condition.MaxDecision)
	for from < to {
		if mid := (from + to) / 2; judge(m, in, mid).Spent != "" {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return from
}

// TestBudget: at the price of all that is asked nothing changes; with one unit less the call is as risky as can be, and
// must be denied.
func TestBudget(t *testing.T) {
	lower := risk.Rule{ID: "lower", SetMode: "safe", Reason: "It is harmless."}
	for _, tc := range []struct {
		name string
		c    risk.Content
		at   string // the rule where it is spent
	}{
		{"expression", content(lower, risk.Rule{ID: "x", ScoreExpr: "score + double(args.n)"}), "x"},
		{"variable", withVars(content(lower, risk.Rule{ID: "x", ScoreExpr: "vars.v"}), risk.Var{Name: "v", Expr: "args.n * 2"}), "x"},
		{"predicate", content(lower, risk.Rule{ID: "x", SetMode: "safe", Args: arg("t", "matches", `"b+"`)}), "x"},
		{"predicate-of-what-is-missing", content(lower, risk.Rule{ID: "x", SetMode: "safe", Args: arg("none", "eq", `1`)}), "x"},
		{"second-rule", content(risk.Rule{ID: "a", ScoreExpr: "900"}, risk.Rule{ID: "x", ScoreExpr: "score"}), "x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, in := compile(t, tc.c), call(`{"n":5,"t":"abc"}`)
			price, whole := need(m, in), m.Judge(condition.NewSubject(in))
			if got := judge(m, in, price); !cmp.Equal(got, whole) || got.Spent != "" {
				t.Errorf("with its price, %d: %s", price, cmp.Diff(whole, got))
			}
			got := judge(m, in, price-1)
			want := fmt.Sprintf("The budget for conditions was spent at the risk rule %q, so the call is denied.", tc.at)
			last := got.Contributions[len(got.Contributions)-1]
			if got.Mode != "danger" || got.Score != risk.MaxScore || got.Spent != want || last.Failed != want || last.Rule != tc.at {
				t.Errorf("with one unit less: %+v, want danger and %q", got, want)
			}
			for i, c := range got.Contributions[:len(got.Contributions)-1] {
				if c != whole.Contributions[i] {
					t.Errorf("with one unit less, %+v stands before, not %+v", c, whole.Contributions[i])
				}
			}
		})
	}
}

// TestBudgetOfExpensivePredicates: a thousand rules with patterns, texts and lists over large arguments spend the budget; over
// small ones they do not.
func TestBudgetOfExpensivePredicates(t *testing.T) {
	for _, tc := range []struct{ name, op, value, large, small string }{
		{"pattern", "matches", `"(?i)(a|aa|aaa)+c"`, `"` + strings.Repeat("a", 60_000) + `"`, `"aaaa"`},
		{"text", "contains", `"zz"`, `"` + strings.Repeat("K", 60_000) + `"`, `"KKK"`},
		{"list-of-numbers", "contains", `5`, "[" + strings.Repeat("1.5,", 15_000) + "1]", "[1,2.5,3]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := content()
			for i := range risk.MaxRules {
				c.Rules = append(c.Rules, risk.Rule{ID: fmt.Sprint(i), Escalate: true, Args: arg("x", tc.op, tc.value)})
			}
			m := compile(t, c)
			if got := judge(m, call(`{"x":`+tc.large+`}`), condition.MaxDecision); got.Spent == "" {
				t.Errorf("large arguments do not spend the budget: %s, score %d", got.Mode, got.Score)
			}
			if got := judge(m, call(`{"x":`+tc.small+`}`), condition.MaxDecision); got.Spent != "" {
				t.Errorf("small arguments: %s", got.Spent)
			}
		})
	}
}
