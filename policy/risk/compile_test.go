package risk_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
)

// faults returns the faults in an error.
func faults(tb testing.TB, err error) (all condition.Faults) {
	tb.Helper()
	if !errors.As(err, &all) {
		tb.Fatalf("Compile: %v, want faults", err)
	}
	return all
}

func pred(path, op, value string) risk.Content {
	return content(risk.Rule{ID: "r", Escalate: true, Args: arg(path, op, value)})
}

func list(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]" }

// steps is a pattern of n instructions: one for each letter, and two that every pattern has.
func steps(n int) string {
	return `"a{1000}b{1000}` + strings.Repeat("c", n-2002) + `"`
}

func TestCompileRefuses(t *testing.T) {
	mode := func(name string, baseline int) risk.Content {
		c := content()
		c.Modes = append([]risk.Mode{{Name: name, Baseline: baseline}}, c.Modes...)
		return c
	}
	when := func(list ...risk.Threshold) risk.Content { return byScore(content(), list...) }
	score := func(expr string) risk.Content { return content(risk.Rule{ID: "r", ScoreExpr: expr}) }
	vars := func(vars ...risk.Var) risk.Content { return withVars(content(), vars...) }
	for _, test := range []struct {
		name    string
		content risk.Content
		want    string // the whole sentence, or its beginning
	}{
		{"nothing", risk.Content{}, `modes: there is none`},
		{"mode-twice", mode("review", 0), `modes[2] ("review"), name: it stands twice`},
		{"baseline-negative", mode("m", -1), `modes[0] ("m"), baseline: -1 is not in 0 to 1000`},
		{"baseline-falls", mode("m", 1), `modes[1] ("safe"), baseline: 0 is less than the 1 of "m", a less strict mode`},
		{"too-many-modes", risk.Content{Modes: make([]risk.Mode, risk.MaxModes+1)}, `modes: there are 17, more than 16`},

		{"var-name", vars(risk.Var{Name: "a b", Expr: "1"}), `vars[0] ("a b"), name: `},
		{"var-twice", vars(risk.Var{Name: "a", Expr: "1"}, risk.Var{Name: "a", Expr: "1"}), `vars[1] ("a"), name: `},
		{"var-uses-a-later-one", vars(risk.Var{Name: "a", Expr: "vars.b"}, risk.Var{Name: "b", Expr: "1"}),
			`vars[0] ("a"), expr: 1:1: `},
		{"too-many-vars", vars(make([]risk.Var, risk.MaxVars+1)...), `vars: there are 65, more than 64`},

		{"id-twice", content(risk.Rule{ID: "r", Escalate: true}, risk.Rule{ID: "r", Escalate: true}),
			`rules[1] ("r"), id: it stands twice`},
		{"id-of-by-score", content(risk.Rule{ID: risk.ByScore, Escalate: true}),
			`rules[0] ("set_mode_by_score"), id: this name stands`},
		{"rule-without-effect", content(risk.Rule{ID: "r", Match: risk.Match{Tool: "x"}}),
			`rules[0] ("r"): it does nothing; it needs set_mode, escalate or score_expr`},
		{"rule-sets-no-mode", content(risk.Rule{ID: "r", SetMode: "dangre"}),
			`rules[0] ("r"), set_mode: there is no mode "dangre"; the modes are safe`},
		{"glob", content(risk.Rule{ID: "r", Escalate: true, Match: risk.Match{Server: strings.Repeat("*a", 17)}}),
			`rules[0] ("r"), match.server: `},
		{"too-many-rules", content(make([]risk.Rule, risk.MaxRules+1)...), `rules: there are 1001, more than 1000`},

		{"expression-risk", score("risk.score + 1"), `rules[0] ("r"), score_expr: 1:1: `},

		{"path-empty", pred("", "eq", "1"), `rules[0] ("r"), args[0].path: it is empty`},
		{"path-no-pointer", pred("/a~2", "eq", "1"), `rules[0] ("r"), args[0].path: it is not a JSON pointer`},
		{"op-unknown", pred("a", "equals", "1"),
			`rules[0] ("r"), args[0].op: there is no op "equals"; the ops are eq, ne, gt, gte, lt, lte, in, contains, matches, exists`},
		{"value-too-large", pred("a", "eq", `"`+strings.Repeat("v", condition.MaxValueBytes-1)+`"`),
			`rules[0] ("r"), args[0].value: it has 65537 bytes`},
		{"value-null", pred("a", "eq", "null"),
			`rules[0] ("r"), args[0].value: null compares with nothing; ask with exists`},
		{"value-list", pred("a", "eq", "[1]"),
			`rules[0] ("r"), args[0].value: it must be a text, a number, true or false`},
		{"value-number-out-of-bounds", pred("a", "eq", "1e1001"),
			`rules[0] ("r"), args[0].value: the number 1e1001 is too large for double`},
		{"gt-text", pred("a", "gt", `"5"`), `rules[0] ("r"), args[0].value: gt takes a number`},
		{"in-too-many", pred("a", "in", list(condition.MaxIn+1)),
			`rules[0] ("r"), args[0].value: the list has 1025 elements`},
		{"in-list", pred("a", "in", `[[1]]`), `rules[0] ("r"), args[0].value: JSON nests too deep`},
		{"contains-nothing", pred("a", "contains", `""`),
			`rules[0] ("r"), args[0].value: every text contains the empty text`},
		{"matches-nothing", pred("a", "matches", `""`), `rules[0] ("r"), args[0].value: matches takes a pattern`},
		{"matches-lookahead", pred("a", "matches", `"(?=a)"`), `rules[0] ("r"), args[0].value: error parsing regexp`},
		{"matches-repeats", pred("a", "matches", steps(condition.MaxRegex+1)),
			`rules[0] ("r"), args[0].value: the pattern compiles to 2049 instructions, more than 2048`},
		{"exists-number", pred("a", "exists", `1`), `rules[0] ("r"), args[0].value: exists takes true or false`},

		{"by-score-no-mode", when(risk.Threshold{Mode: "x", When: "true"}),
			`set_mode_by_score[0], mode: there is no mode "x"`},
		{"by-score-names-args", when(risk.Threshold{Mode: "safe", When: "args.n > 5"}),
			`set_mode_by_score[0] ("safe"), when: 1:1: `},
		{"by-score-list", when(risk.Threshold{Mode: "safe", When: "score in [1.0]"}),
			`set_mode_by_score[0] ("safe"), when: a list or a map`},
		{"by-score-fails", when(risk.Threshold{Mode: "danger", When: "1 / int(score - 7.0) > 0"}),
			`set_mode_by_score[0] ("danger"), when: it fails for the score 7: `},
		{"by-score-low-mode-first", when(risk.Threshold{Mode: "review", When: "score >= 50"}, risk.Threshold{Mode: "danger", When: "score >= 90"}),
			`set_mode_by_score[1] ("danger"), when: for no score from 0 to 1000 is it the first that is true; put the most severe mode first`},
		{"by-score-falls", when(risk.Threshold{Mode: "review", When: "score > 90"}, risk.Threshold{Mode: "danger", When: "score > 50"}),
			`set_mode_by_score: the score 91 would give a less strict mode than the score 90`},
		{"by-score-ends", when(risk.Threshold{Mode: "safe", When: "score < 90"}),
			`set_mode_by_score: the score 90 would give a less strict mode than the score 89`},
		{"too-many-by-score", when(make([]risk.Threshold, risk.MaxThresholds+1)...),
			`set_mode_by_score: there are 17, more than 16`},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, err := risk.Compile(test.content)
			if err == nil || m != nil {
				t.Fatalf("Compile = %v, %v, want no model and an error", m, err)
			}
			for _, fault := range faults(t, err) {
				if strings.HasPrefix(fault.Error(), test.want) {
					return
				}
			}
			t.Errorf("Compile: %v, want %s…", err, test.want)
		})
	}
}

func TestCompileReportsAllFaults(t *testing.T) {
	c := byScore(withVars(from("nowhere", content(
		risk.Rule{ID: "x", SetMode: "y", ScoreExpr: "1 +\n  nothing", Args: []risk.Predicate{{Path: "a", Op: "gt", Value: jsontext.Value(`5`)}, {}}},
		risk.Rule{ID: "x"},
	)), risk.Var{Name: "v", Expr: "true"}), risk.Threshold{Mode: "z", When: "1"})
	_, err := risk.Compile(c)
	var got []string
	for _, f := range faults(t, err) {
		got = append(got, fmt.Sprintf("%s %d %s %s", f.List, f.Index, f.ID, f.Key))
	}
	want := []string{"initial -1  ", "vars 0 v expr", "rules 0 x set_mode", "rules 0 x score_expr", "rules 0 x args[1].path",
		"rules 1 x id", "rules 1 x ", "set_mode_by_score 0  mode", "set_mode_by_score 0 z when"}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("faults:\n%s\nwant:\n%s", g, w)
	}
	if inside := faults(t, err)[3].Cause; inside == nil || inside.Line != 2 || inside.Column != 3 {
		t.Errorf("inside of %v is %+v, want a condition.Error at 2:3", faults(t, err)[3], inside)
	}
}

// TestCanonicalOrder holds the recorded types to package canonical's order of members.
func TestCanonicalOrder(t *testing.T) {
	a := compile(t, pred("n", "gt", "5")).Judge(fresh(`{}`))
	if got, want := string(canonical.MustSorted(a)), string(canonical.MustMarshal(a)); got != want {
		t.Errorf("Sorted = %s, want %s", got, want)
	}
}
