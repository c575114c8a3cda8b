package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy"
	"pgfsm/policy/condition"
)

func TestHistoryOfPolicyTests(t *testing.T) {
	read := func(history string) ([]PolicyTest, error) {
		return ReadPolicyTests("tests.yaml", []byte("tests:\n  - name: x\n    expect: deny\n    input:\n      server: s\n      tool: t\n      history:\n        "+history+"\n"), nil)
	}
	tests, err := read(`history.count("actor", "60m"): 6` + "\n        " + `'history.sum("task", "1d", "a.b")': 1.50`)
	want := []policy.HistoryAnswer{
		{Of: condition.QueryCount, Scope: condition.ScopeActor, Window: 3600, Value: "6"},
		{Of: condition.QuerySum, Scope: condition.ScopeTask, Window: 86400, Path: "a.b", Value: "1.50"},
	}
	if err != nil || len(tests) != 1 {
		t.Fatalf("ReadPolicyTests() = %+v, %v", tests, err)
	}
	if d := cmp.Diff(want, tests[0].History); d != "" {
		t.Errorf("History differs: %s", d)
	}
	for _, c := range []struct{ name, history, says string }{
		{"no-question", `actor.id: 6`, "cannot be asked"},
		{"window", `'history.count("actor", "1y")': 6`, "no window"},
		{"text", `'history.count("actor", "1h")': six`, "is no answer"},
		{"quoted-number", `'history.count("actor", "1h")': "6"`, "is no answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := read(c.history); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("ReadPolicyTests() = %v, want %q", err, c.says)
			}
		})
	}
}
