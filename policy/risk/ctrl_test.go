package risk_test

import (
	"fmt"
	"strings"
	"testing"

	"pgfsm/policy/risk"
)

// These are holes of a system in use today (agent-ctrl, commit f967020), each with what happens here.

// An argument named env, max or min there replaces the name or the function, and turns denials into permissions.
func TestArgumentsShadowNothing(t *testing.T) {
	m := compile(t, byScore(from("safe", content(
		risk.Rule{ID: "prod", Match: risk.Match{Env: "prod"}, ScoreExpr: `env == "prod" && server == "bank" && tool == "transfer" ? 90 : 10`},
		risk.Rule{ID: "tokens", ScoreExpr: "math.greatest(score, 70.0 + math.least(double(args.tokens), 1000.0) / 4.0)"},
	)), risk.Threshold{Mode: "danger", When: "score >= 80"}))
	want := outcome{"danger", 320, "prod tokens set_mode_by_score", "safe safe danger"}
	if got := outcomeOf(m.Assess(call(`{"tokens":300000}`))); got != want {
		t.Fatalf("without anything to shadow: %+v, want %+v", got, want)
	}
	for _, name := range []string{"env", "max", "min", "server", "tool", "score", "vars", "actor", "args", "risk", "math",
		"math.greatest", "double", "actor.id", "now", "pinned", "tool_annotations"} {
		for _, value := range []string{`"dev"`, `0`, `1`, `null`, `true`, `[]`, `{}`, `{"greatest":0,"args":{"tokens":1}}`, `1e9999`} {
			args := fmt.Sprintf(`{"%s":%s,"tokens":300000}`, name, value)
			if got := outcomeOf(m.Assess(call(args))); got != want {
				t.Errorf("Assess(%s) = %+v, want %+v", args, got, want)
			}
		}
	}
}

// The expression (args.get('amount', 0) or 0) / 1000 there always fails, and so is always 0: any amount scores 70.
func TestFailingVarIsNeverZero(t *testing.T) {
	if _, err := risk.Compile(withVars(content(), risk.Var{Name: "k", Expr: "(args.get('amount', 0) or 0) / 1000"})); err == nil {
		t.Error("Compile takes Python, want an error when it is read")
	}
	m := compile(t, byScore(from("safe", withVars(content(
		risk.Rule{ID: "amount", ScoreExpr: "math.greatest(score, 70.0 + math.least(vars.k, 100.0) / 4.0)"}),
		risk.Var{Name: "k", Expr: "has(args.amount) ? double(args.amount) / 1000.0 : 0.0"})),
		risk.Threshold{Mode: "danger", When: "score >= 85"}, risk.Threshold{Mode: "review", When: "score >= 50"}))
	for _, test := range []struct {
		args, mode string
		score      int
	}{
		{`{}`, "review", 70},
		{`{"amount":0}`, "review", 70},
		{`{"amount":1}`, "review", 71},
		{`{"amount":60000}`, "danger", 90}, // 85, and the baseline of danger
		{`{"amount":5000000}`, "danger", 95},
		{`{"amount":1000000000}`, "danger", 95},
		{`{"amount":"sixty thousand"}`, "danger", 1000},
		{`{"amount":null}`, "danger", 1000},
		{`{"amount":[60000]}`, "danger", 1000},
		{`{"amount":1e400}`, "danger", 1000},
	} {
		if a := m.Assess(call(test.args)); a.Mode != test.mode || a.Score != test.score {
			t.Errorf("Assess(%s) = %s, %d (%+v), want %s, %d", test.args, a.Mode, a.Score, a.Contributions, test.mode, test.score)
		}
	}
}

// 9**9**9 and 'a'*10**9 there run without limit, on every call. Here they are no expressions, and what takes long spends the
// budget.
func TestExpensiveExpressionsEnd(t *testing.T) {
	for _, expr := range []string{
		"9**9**9", "'a' * 1000000000", "size('a' * 10)", strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200),
	} {
		if _, err := risk.Compile(content(risk.Rule{ScoreExpr: expr})); err == nil {
			t.Errorf("Compile takes %s, want an error", expr)
		}
	}
	nested := "1"
	for range 9 {
		nested = "size([0,1,2,3,4,5,6,7,8,9].map(x, " + nested + "))"
	}
	for _, expr := range []string{nested, "size(args.a.map(x, args.a.map(y, args.a.map(z, args.a))))"} {
		m := compile(t, content(risk.Rule{ID: "a", ScoreExpr: expr}))
		a := m.Assess(call(`{"a":[` + strings.Repeat("1,", 500) + `1]}`))
		if a.Spent == "" || a.Mode != "danger" || a.Score != risk.MaxScore {
			t.Errorf("Assess with %.40s = %+v, want the budget to be spent", expr, a)
		}
	}
}

// A predicate that reads contains: ssn there misses SSN and lists; see TestPredicate. Here also for the mode.
func TestContainsFindsSSN(t *testing.T) {
	m := compile(t, from("safe", content(risk.Rule{ID: "pii", Args: arg("fields", "contains", `"ssn"`), SetMode: "danger"})))
	for args, mode := range map[string]string{
		`{"fields":"name,SSN"}`:     "danger",
		`{"fields":["name","SSN"]}`: "danger",
		`{"fields":{"SSN":1}}`:      "danger",
		`{"fields":null}`:           "danger",
		`{}`:                        "danger",
		`{"fields":["name"]}`:       "safe",
		`{"fields":"name"}`:         "safe",
	} {
		if a := m.Assess(call(args)); a.Mode != mode {
			t.Errorf("Assess(%s) = %s, want %s", args, a.Mode, mode)
		}
	}
}
