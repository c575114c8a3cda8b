package risk_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
)

// content is the default ladder, begun in review, with rules.
func content(rules ...risk.Rule) risk.Content {
	for i := range rules {
		if rules[i].ID == "" {
			rules[i].ID = string(rune('a' + i))
		}
	}
	return risk.Content{Modes: risk.DefaultModes(), Initial: "review", Rules: rules}
}

// from begins c in another mode.
func from(mode string, c risk.Content) risk.Content {
	c.Initial = mode
	return c
}

func withVars(c risk.Content, vars ...risk.Var) risk.Content {
	c.Vars = vars
	return c
}

func byScore(c risk.Content, list ...risk.Threshold) risk.Content {
	c.ModeByScore = list
	return c
}

func arg(path, op, value string) []risk.Predicate {
	return []risk.Predicate{{Path: path, Op: op, Value: jsontext.Value(value)}}
}

func compile(tb testing.TB, c risk.Content) *risk.Model {
	tb.Helper()
	m, err := risk.Compile(c)
	if err != nil {
		tb.Fatalf("Compile(%+v): %v", c, err)
	}
	return m
}

func call(args string) *condition.Input {
	return &condition.Input{Server: "bank", Tool: "transfer", Env: "prod", Args: []byte(args), Now: "2026-01-02T03:04:05.000Z"}
}

// fresh is a call that nothing has judged.
func fresh(args string) *condition.Subject { return condition.NewSubject(call(args)) }

// outcome is what an assessment comes to, without sentences.
type outcome struct {
	Mode   string
	Score  int
	Rules  string // that contributed, in order: id, "!" if something failed, "?" if it counted as not matched
	Stages string // the modes behind each
}

func outcomeOf(a risk.Assessment) outcome {
	var rules, stages []string
	for _, c := range a.Contributions {
		id := c.Rule
		if c.Failed != "" {
			id += "!"
		}
		if !c.Matched {
			id += "?"
		}
		rules, stages = append(rules, id), append(stages, c.Mode)
	}
	return outcome{a.Mode, a.Score, strings.Join(rules, " "), strings.Join(stages, " ")}
}

func TestRules(t *testing.T) {
	score := func(expr string) risk.Rule { return risk.Rule{ScoreExpr: expr} }
	set := func(mode string) risk.Rule { return risk.Rule{SetMode: mode} }
	up := risk.Rule{Escalate: true}
	prod := risk.Match{Env: "prod"}
	thresholds := []risk.Threshold{{Mode: "danger", When: "score >= 80"}, {Mode: "review", When: "score >= 40"}}
	for _, test := range []struct {
		name    string
		content risk.Content
		args    string
		want    outcome
	}{
		{"no-rules", content(), `{}`, outcome{"review", 50, "", ""}},
		{"the-score-is-at-least-the-baseline", content(score("7")), `{}`, outcome{"review", 50, "a", "review"}},
		{"set-downwards-takes-the-baseline-along", content(set("safe")), `{}`, outcome{"safe", 0, "a", "safe"}},
		{"set-downwards-keeps-what-expressions-gave", content(score("60"), set("safe")), `{}`,
			outcome{"safe", 60, "a b", "review safe"}},
		{"rules-in-order", content(set("danger"), set("safe"), up), `{}`,
			outcome{"review", 50, "a b c", "danger safe review"}},
		{"escalate-at-the-top", from("danger", content(up, up)), `{}`, outcome{"danger", 90, "a b", "danger danger"}},
		{"set-before-escalate", content(risk.Rule{SetMode: "safe", Escalate: true}), `{}`,
			outcome{"review", 50, "a", "review"}},
		{"mode-before-score", content(risk.Rule{SetMode: "danger", ScoreExpr: "score + 1.0"}), `{}`,
			outcome{"danger", 91, "a", "danger"}},
		{"score-replaces", content(score("300"), score("200")), `{}`, outcome{"review", 200, "a b", "review review"}},
		{"score-so-far", content(score("100"), score("score + 5.0")), `{}`,
			outcome{"review", 105, "a b", "review review"}},
		{"score-so-far-is-at-least-the-baseline", content(score("score + 5.0")), `{}`,
			outcome{"review", 55, "a", "review"}},
		{"rounded-up", content(score("70.0 + 0.001")), `{}`, outcome{"review", 71, "a", "review"}},
		{"clamped-above", content(score("1e300")), `{}`, outcome{"review", 1000, "a", "review"}},
		{"clamped-below", from("safe", content(score("-5"))), `{}`, outcome{"safe", 0, "a", "safe"}},
		{"least-fraction-is-one", from("safe", content(score("1e-300"))), `{}`, outcome{"safe", 1, "a", "safe"}},
		{"only-matching-globs", content(risk.Rule{Match: risk.Match{Server: "b?nk", Tool: "tr*", Env: "*"}, SetMode: "danger"},
			risk.Rule{Match: risk.Match{Server: "Bank"}, SetMode: "safe"}, risk.Rule{Match: risk.Match{Tool: "trans"}, SetMode: "safe"},
			risk.Rule{Match: risk.Match{Env: "dev"}, SetMode: "safe"}), `{}`, outcome{"danger", 90, "a", "danger"}},
		{"unmatched-predicate-leaves-no-trace", content(risk.Rule{Match: prod, Args: arg("n", "gt", "5"), SetMode: "danger"}),
			`{"n":5}`, outcome{"review", 50, "", ""}},

		{"by-score-raises", from("safe", byScore(content(score("45")), thresholds...)), `{}`,
			outcome{"review", 50, "a set_mode_by_score", "safe review"}},
		{"by-score-never-lowers", from("danger", byScore(content(), risk.Threshold{Mode: "review", When: "score >= 0"})), `{}`,
			outcome{"danger", 90, "", ""}},
		{"by-score-nothing-true", from("safe", byScore(content(score("39")), thresholds...)), `{}`,
			outcome{"safe", 39, "a", "safe"}},
		{"by-score-is-asked-again-with-the-new-baseline", from("safe", byScore(content(score("10")),
			risk.Threshold{Mode: "danger", When: "score >= 50"}, risk.Threshold{Mode: "review", When: "score >= 10"})), `{}`,
			outcome{"danger", 90, "a set_mode_by_score set_mode_by_score", "safe review danger"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := outcomeOf(compile(t, test.content).Judge(fresh(test.args)))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Judge(%s) (-want +got):\n%s", test.args, diff)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	score := func(expr string) risk.Content { return from("safe", content(risk.Rule{ScoreExpr: expr})) }
	failed := outcome{"review", 1000, "a!", "review"}
	for _, test := range []struct {
		name    string
		content risk.Content
		args    string
		want    outcome
	}{
		{"division-by-zero", score("10 / args.n"), `{"n":0}`, failed},
		{"missing-argument", score("args.n"), `{}`, failed},
		{"text-argument", score("args.n"), `{"n":"5"}`, failed},
		{"in-addition-to-set-and-escalate", from("safe", content(risk.Rule{SetMode: "safe", Escalate: true, ScoreExpr: "args.n"})),
			`{}`, outcome{"danger", 1000, "a!", "danger"}},
		{"each-failure-escalates", from("safe", content(risk.Rule{ScoreExpr: "args.n"}, risk.Rule{ScoreExpr: "args.m"})), `{}`,
			outcome{"danger", 1000, "a! b!", "review danger"}},
		{"no-later-rule-takes-it-back", from("safe", content(risk.Rule{ScoreExpr: "args.n"}, risk.Rule{SetMode: "safe"},
			risk.Rule{ScoreExpr: "5"})), `{}`, outcome{"review", 1000, "a! b c", "review review review"}},
		{"later-rules-still-raise", from("safe", content(risk.Rule{ScoreExpr: "args.n"}, risk.Rule{SetMode: "danger"},
			risk.Rule{SetMode: "safe"})), `{}`, outcome{"review", 1000, "a! b c", "review danger review"}},
		{"a-rule-that-does-not-match-fails-not", from("safe", content(risk.Rule{Match: risk.Match{Tool: "x"}, ScoreExpr: "args.n"})),
			`{}`, outcome{"safe", 0, "", ""}},
		{"the-score-counts-as-the-highest", byScore(score("args.n"), risk.Threshold{Mode: "danger", When: "score >= 999"}), `{}`,
			outcome{"danger", 1000, "a! set_mode_by_score", "review danger"}},
		{"unknown-and-failing", from("safe", content(risk.Rule{Args: arg("k", "eq", "1"), ScoreExpr: "args.n"})), `{}`,
			outcome{"review", 1000, "a!", "review"}},

		{"var", withVars(score("vars.k + 1.0"), risk.Var{Name: "k", Expr: "args.n / 1000"}), `{"n":60000}`,
			outcome{"safe", 61, "a", "safe"}},
		{"var-fails", withVars(score("vars.k + 1.0"), risk.Var{Name: "k", Expr: "args.n / 1000"}),
			`{"n":"60000"}`, failed},
		{"every-user-of-a-failed-var-fails", from("safe", withVars(content(risk.Rule{ScoreExpr: "vars.k"}, risk.Rule{ScoreExpr: "vars.k"}),
			risk.Var{Name: "k", Expr: "args.n"})), `{}`, outcome{"danger", 1000, "a! b!", "review danger"}},
		{"var-nobody-uses", withVars(score("vars.l"), risk.Var{Name: "k", Expr: "args.n"}, risk.Var{Name: "l", Expr: "4"}), `{}`,
			outcome{"safe", 4, "a", "safe"}},
		{"score-in-a-var-is-the-initial-baseline", withVars(content(risk.Rule{ScoreExpr: "700"}, risk.Rule{ScoreExpr: "vars.k + 1.0"}),
			risk.Var{Name: "k", Expr: "score"}), `{}`, outcome{"review", 51, "a b", "review review"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := compile(t, test.content).Judge(fresh(test.args))
			if diff := cmp.Diff(test.want, outcomeOf(a)); diff != "" {
				t.Errorf("Judge(%s) (-want +got):\n%s\n%+v", test.args, diff, a)
			}
		})
	}
}

func TestNothingKnown(t *testing.T) {
	var zero risk.Model
	var none *risk.Model
	m := compile(t, from("lenient", risk.Content{Modes: []risk.Mode{{Name: "lenient", Baseline: 0}, {Name: "wild", Baseline: 7}}}))
	for _, test := range []struct {
		name string
		got  risk.Assessment
		want string
	}{
		{"zero-model", zero.Judge(fresh(`{}`)), "danger"},
		{"nil-model", none.Judge(fresh(`{}`)), "danger"},
		{"nil-subject-own-ladder", m.Judge(nil), "wild"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if want := (outcome{test.want, risk.MaxScore, "!?", test.want}); outcomeOf(test.got) != want {
				t.Errorf("Judge() = %+v, want %+v", outcomeOf(test.got), want)
			}
		})
	}
}

func TestReasonsAndWhatPoliciesSee(t *testing.T) {
	m := compile(t, byScore(withVars(content(
		risk.Rule{ID: "large", Args: arg("amount", "gt", "1000"), Escalate: true, Reason: "A large transfer."},
		risk.Rule{ID: "calm", Args: arg("dry_run", "eq", "true"), SetMode: "safe", Reason: "A rehearsal."},
		risk.Rule{ID: "sum", ScoreExpr: "vars.k", Reason: "By amount."},
	), risk.Var{Name: "k", Expr: "args.amount / 10"}), risk.Threshold{Mode: "danger", When: "score > 500"}))
	got := m.Judge(fresh(`{"amount":"much"}`))
	want := risk.Assessment{Mode: "danger", Score: 1000, Contributions: []risk.Contribution{
		{Rule: "large", Matched: true, Mode: "danger", Score: 90, Reason: "A large transfer.",
			Failed: `"amount" is a text, so gt is unknown; the rule counts as matched`},
		{Rule: "calm", Mode: "danger", Score: 90, Reason: "A rehearsal.",
			Failed: `"dry_run" is missing, so eq is unknown; the rule counts as not matched: it would lower`},
		{Rule: "sum", Matched: true, Mode: "danger", Score: 1000, Reason: "By amount."},
	}}
	if len(got.Contributions) == 3 {
		failed := &got.Contributions[2].Failed
		if !strings.Contains(*failed, "vars.k failed") || !strings.HasPrefix(*failed, "score_expr failed: one level up") {
			t.Errorf("Failed = %q, want it to name the variable", *failed)
		}
		*failed = ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Judge() (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(condition.Risk{Score: 1000, Mode: "danger", Rules: []string{"large", "sum"}}, got.Risk()); diff != "" {
		t.Errorf("Risk() (-want +got):\n%s", diff)
	}
	raised := m.Judge(fresh(`{"amount":6000,"dry_run":false}`))
	if diff := cmp.Diff([]string{"large", "sum"}, raised.Risk().Rules); diff != "" {
		t.Errorf("Risk().Rules of %+v (-want +got):\n%s", raised, diff)
	}
	lenient := m.Judge(fresh(`{"amount":6000,"dry_run":true}`))
	last := lenient.Contributions[len(lenient.Contributions)-1]
	if wantLast := (risk.Contribution{Rule: risk.ByScore, Matched: true, Mode: "danger", Score: 600, Reason: "score > 500"}); last != wantLast {
		t.Errorf("last contribution = %+v, want %+v", last, wantLast)
	}
	if diff := cmp.Diff([]string{"large", "calm", "sum"}, lenient.Risk().Rules); diff != "" {
		t.Errorf("Risk().Rules of %+v (-want +got):\n%s", lenient, diff)
	}
}
