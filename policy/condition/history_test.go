package condition_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/policy/condition"
)

func TestHistory(t *testing.T) {
	count := condition.Query{Of: condition.QueryCount, Scope: condition.ScopeActor, Window: 3600}
	all := condition.Query{Of: condition.QueryCountAll, Scope: condition.ScopeTask, Window: 60}
	sum := condition.Query{Of: condition.QuerySum, Scope: condition.ScopeActor, Window: 86400, Path: "order.amount"}
	other := condition.Query{Of: condition.QuerySum, Scope: condition.ScopeActor, Window: 86400, Path: "n"}
	for _, tc := range []struct {
		name, src string
		answers   []condition.Answer
		want      bool
		fails     string
	}{
		{"count", `history.count("actor", "1h") == 5 && history.count("actor", "60m") >= 5`, []condition.Answer{count.Answer("5")}, true, ""},
		{"count-of-all", `history.count_all("task", "1m") + 1 == 8`, []condition.Answer{all.Answer("7")}, true, ""},
		{"another-window", `history.count("actor", "2h") >= 0`, []condition.Answer{count.Answer("5")}, false, `history.count("actor", "2h") is not known`},
		{"nothing-known", `history.count("actor", "1h") == 0`, nil, false, "is not known"},
		{"not-known-is-not-zero", `!(history.count("actor", "1h") > 0)`, nil, false, "is not known"},
		{"failed", `history.count("actor", "1h") >= 0`, []condition.Answer{count.Fail("nobody asks")}, false, "nobody asks"},
		{"no-number", `history.count("actor", "1h") >= 0`, []condition.Answer{count.Answer("five")}, false, "is no count"},
		{"sum", `history.sum("actor", "1d", "order.amount") + args.n <= 0.4 && history.sum("actor", "1d", "order.amount") == 0.3`,
			[]condition.Answer{sum.Answer("0.3")}, true, ""},
		{"sum-of-another-argument", `history.sum("actor", "1d", "n") > 0.0`, []condition.Answer{sum.Answer("3")}, false, "is not known"},
		{"sum-that-no-double-holds", `history.sum("actor", "1d", "n") > 1`,
			[]condition.Answer{other.Answer("9007199254740993")}, false, "no sum that a double holds"},
		{"sum-too-large", `history.sum("actor", "1d", "n") > 0.0`, []condition.Answer{other.Answer("1e400")}, false, "is no sum"},
		{"error-beside-true", `history.count("actor", "1h") > 1 || args.n == 0.1`, nil, true, ""},
		{"in-a-loop", `[1, 2].all(x, x < history.count("actor", "1h"))`, []condition.Answer{count.Answer("5")}, true, ""},
		{"argument-called-history", `args.history.count == 1`, nil, true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := mustBool(t, policyEnv(t), tc.src)
			s := condition.NewSubject(&condition.Input{Args: []byte(`{"history":{"count":1},"n":0.1}`), History: tc.answers})
			for range 2 {
				got, err := p.True(s)
				if got != tc.want || (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("True(%s) = %t, %v; want %t, %q", tc.src, got, err, tc.want, tc.fails)
				}
			}
		})
	}
}

func TestHistoryRefused(t *testing.T) {
	for _, tc := range []struct {
		name, src string
		column    int
		says      string
	}{
		{"scope", `history.count("user", "1h") > 1`, 15, `no scope "user"`},
		{"scope-from-args", `history.count(args.x, "1h") > 1`, 19, "written out"},
		{"window-from-args", `history.count("actor", args.w) > 1`, 28, "written out"},
		{"window-empty", `history.count("actor", "") > 1`, 24, "no window"},
		{"window-zero", `history.count("actor", "0h") > 1`, 24, "no window"},
		{"window-one-second-too-long", `history.count("actor", "2678401s") > 1`, 24, "no window"},
		{"window-overflow", `history.count("actor", "9223372036854775807d") > 1`, 24, "no window"},
		{"path-empty", `history.sum("actor", "1h", "") > 1.0`, 28, "with dots"},
		{"path-too-long", `history.sum("actor", "1h", "` + strings.Repeat("a", condition.MaxPath+1) + `") > 1.0`, 28, "with dots"},
		{"no-such-function", `history.max("actor", "1h") > 1`, 12, "undeclared reference"},
		{"no-path", `history.sum("actor", "1h") > 1.0`, 12, "no matching overload"},
		{"loop-takes-history", `args.list.exists(history, true)`, 17, "calls its element history"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := policyEnv(t).Bool(tc.src)
			var e *condition.Error
			if !errors.As(err, &e) || e.Column != tc.column || !strings.Contains(e.Problem, tc.says) {
				t.Errorf("Bool(%s) = %v, want %q at %d", tc.src, err, tc.says, tc.column)
			}
		})
	}
	score, err := condition.ScoreEnv()
	check.NoError(t, err)
	if _, err := score.Bool(`history.count("actor", "1h") > 1`); err == nil {
		t.Error("set_mode_by_score can ask for history")
	}
	for _, ok := range []string{`history.count("actor", "31d") > 1`, `history.count("task", "2678400s") > 1`, `history.count("actor", "1s") > 1`,
		`history.sum("actor", "1h", "` + strings.Repeat("a", condition.MaxPath) + `") > 1.0`} {
		mustBool(t, policyEnv(t), ok)
	}
}

func TestQueries(t *testing.T) {
	p := mustBool(t, policyEnv(t), `history.sum("task", "1d", "a.b") > 2.0 || history.count("actor", "60m") > 1 ||
		history.count("actor", "1h") > 2 || history.count_all("actor", "90s") > 2`)
	want := []condition.Query{
		{Of: condition.QueryCount, Scope: condition.ScopeActor, Window: 3600},
		{Of: condition.QueryCountAll, Scope: condition.ScopeActor, Window: 90},
		{Of: condition.QuerySum, Scope: condition.ScopeTask, Window: 86400, Path: "a.b"},
	}
	if diff := cmp.Diff(want, p.Queries()); diff != "" {
		t.Errorf("Queries() differs: %s", diff)
	}
	if got := want[2].String(); got != `history.sum("task", "1d", "a.b")` {
		t.Errorf("String() = %s", got)
	}
	if got := want[1].String(); got != `history.count_all("actor", "90s")` {
		t.Errorf("String() = %s", got)
	}
	if n := len(mustBool(t, policyEnv(t), `pinned`).Queries()); n != 0 {
		t.Errorf("%d queries of an expression that asks nothing", n)
	}
}
