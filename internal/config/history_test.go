package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy"
	"pgfsm/policy/condition"
)

// Where nothing keeps the calls before, nothing can ask for them: that is said when the configuration is read, with the
// place of the condition.
func TestHistoryNeedsALedger(t *testing.T) {
	const ledger = "ledger: \"sqlite:pgfsm.db\"\n"
	policies := func(line string) string {
		return "version: 1\npolicies:\n  - id: a\n    effect: allow\n    " + line + "\n"
	}
	const modes = "version: 1\nmodes: {safe: 0}\n"
	for _, c := range []struct{ name, policy, risk, key, says string }{
		{"when", policies(`when: 'history.count("actor", "1h") < 5'`), "", "", `policy.yaml:5:11: history.count("actor", "1h") needs a ledger`},
		{"deny", policies(`deny: 'history.sum("task", "24h", "n") > 5'`), "", "", `policy.yaml:5:11: history.sum("task", "1d", "n") needs`},
		{"ask", policies(`require_approval_if: 'history.count_all("actor", "1h") > 5'`), "", "", `policy.yaml:5:26: history.count_all`},
		{"with-a-ledger", policies(`deny: 'history.count("actor", "1h") > 5'`), "", ledger, ""},
		{"word-in-a-text", policies(`deny: 'args.x == "history"'`), "", "", ""},
		{"risk-rule", "", modes + "rules: [{id: r, score_expr: 'history.count(\"actor\", \"1h\") * 5'}]\n", "", "risk.yaml:3:29: history"},
		{"risk-variable", "", modes + "vars: {v: 'history.count(\"actor\", \"1h\") * 5'}\nrules: []\n", "", "risk.yaml:3:11: history"},
		{"risk-with-a-ledger", "", modes + "vars: {v: 'history.count(\"actor\", \"1h\") * 5'}\nrules: []\n", ledger, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{"allow.json": "{}", "c.yaml": minimal + c.key}
			if c.policy != "" {
				files["policy.yaml"], files["c.yaml"] = c.policy, files["c.yaml"]+"policy: policy.yaml\n"
			}
			if c.risk != "" {
				files["risk.yaml"], files["c.yaml"] = c.risk, files["c.yaml"]+"risk: risk.yaml\n"
			}
			_, err := Load("c.yaml", openMap(files), Overrides{})
			if c.says == "" {
				if err != nil {
					t.Errorf("Load() = %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "name a ledger") {
				t.Errorf("Load() = %v, want %q", err, c.says)
			}
		})
	}
}

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
		{"more-than-a-question", `'history.count("actor", "1h") + 1': 6`, "no question about calls before"},
		{"window", `'history.count("actor", "1y")': 6`, "no window"},
		{"text", `'history.count("actor", "1h")': six`, "is no answer"},
		{"quoted-number", `'history.count("actor", "1h")': "6"`, "is no answer"},
		{"half-a-call", `'history.count("actor", "1h")': 6.5`, "is no answer"},
		{"below-zero", `'history.count("actor", "1h")': -1`, "is no answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := read(c.history); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("ReadPolicyTests() = %v, want %q", err, c.says)
			}
		})
	}
}
