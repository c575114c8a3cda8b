package explain_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/config"
	"pgfsm/internal/runner/explain"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states/statestest"
)

// explainer explains calls of one tool by policies and risk rules. If stored is set, the tool's definition is known.
func explainer(t *testing.T, stored bool, riskRules, policies string) *explain.Explainer {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{ // in any order
		"pgfsm.yaml": fmt.Sprintf("version: 1\nservers: {%s: {type: http, url: \"http://127.0.0.1:9/mcp\"}}\nallowlist: allowlist.json\n"+
			"risk: risk.yaml\npolicy: policy.yaml\ninput: {defaults: false}\nledger: sqlite:pgfsm.db\n", statestest.Server),
		"allowlist.json": fmt.Sprintf(`{%q: ["look"]}`, statestest.Server),
		"risk.yaml":      cmp.Or(riskRules, "version: 1\n"),
		"policy.yaml":    "version: 1\npolicies:\n" + policies + "\n",
	} {
		check.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	loaded, err := config.Load(filepath.Join(dir, "pgfsm.yaml"), os.ReadFile, config.Overrides{})
	check.NoError(t, err)
	bundle, err := policy.Compile(loaded.Content)
	check.NoError(t, err)
	if !stored {
		return explain.New(bundle, nil, false, statestest.At)
	}
	listings := statestest.Listings(`{"tools":[{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`)
	return explain.New(bundle, bundle.Catalog(canonical.Sum("catalog", nil), listings), false, statestest.At)
}

func call(e *explain.Explainer) *explain.Call {
	return &explain.Call{
		Server: statestest.Server, Tool: "look", Actor: "local:alice", Plan: policy.CallPlan(statestest.Server, "look", []byte("{}")),
		Facts: e.Facts(statestest.Server, "look", nil, nil),
	}
}

// TestUnknownAnnotations shows that the policy's decision is unknown only if it depends on an unknown annotation, and that an unknown schema
// never allows.
func TestUnknownAnnotations(t *testing.T) {
	for _, tt := range []struct{ name, policy, verdict, decision string }{
		{"matters", "{id: a, effect: allow, deny: tool_annotations.destructiveHint}", explain.Unknown, explain.Unknown},
		{"does-not-matter", "{id: a, effect: deny, when: tool_annotations.readOnlyHint || !tool_annotations.readOnlyHint}", rules.Deny, rules.Deny},
		{"not-asked", "{id: a, effect: pending}", rules.Pending, explain.Unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := explainer(t, false, "", "- "+tt.policy)
			x := e.Explain(call(e))
			if got := x.Gates[len(x.Gates)-1]; got.Gate != "policy" || got.Verdict != tt.verdict || x.Decision != tt.decision {
				t.Errorf("the gate %s says %s, the decision is %s; want %s and %s", got.Gate, got.Verdict, x.Decision, tt.verdict, tt.decision)
			}
		})
	}
}

// TestUnknownHistory shows that the decision is unknown as long as the results of queries about earlier calls are not given.
func TestUnknownHistory(t *testing.T) {
	const query = `history.count("actor", "1h")`
	for _, tt := range []struct{ name, risk, policies string }{
		{"policy", "", "- {id: few, effect: allow, deny: '" + query + " > 5'}"},
		{"risk", "version: 1\nrules: [{id: often, score_expr: 'double(" + query + ")'}]\n", "- {id: few, effect: allow, deny: risk.score > 50}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := explainer(t, true, tt.risk, tt.policies)
			c := call(e)
			x := e.Explain(c)
			if last := x.Gates[len(x.Gates)-1]; x.Decision != explain.Unknown || !strings.Contains(last.Reason, "--history '"+query+"=NUMBER'") {
				t.Errorf("Explain() = %s, the policy says %+v; want unknown and how to give the query", x.Decision, last)
			}
			if !e.NeedsHistory(c) {
				t.Fatal("NeedsHistory() = false")
			}
			check.NoError(t, e.ReadHistory(t.Context(), nil, c))
			if x = e.Explain(c); e.NeedsHistory(c) || x.Decision != rules.Allow {
				t.Errorf("with a ledger without calls: %s %s, want allow", x.Decision, x.Reason)
			}
		})
	}
}

// TestTestCoverage shows that a test file reaches policies and risk rules, and which ones it does not reach.
func TestTestCoverage(t *testing.T) {
	e := explainer(t, true, "version: 1\nrules: [{id: r, set_mode: review}, {id: unreached, when: {tool: other}, set_mode: danger}]\n",
		"- {id: trial, effect: deny, mode: shadow}\n- {id: look, match: {tool: look}, effect: allow}\n- {id: rest, effect: deny}")
	file := filepath.Join(t.TempDir(), "tests.yaml")
	input := "input: {server: " + statestest.Server + ", tool: look}"
	check.NoError(t, os.WriteFile(file, []byte("tests:\n  - {name: a, "+input+", expect: allow}\n  - {name: b, "+input+", expect: deny}\n"), 0o600))
	report, err := e.Test([]string{filepath.Dir(file)}, os.ReadFile)
	check.NoError(t, err)
	if report.OK || len(report.Tests) != 2 || !report.Tests[0].OK || report.Tests[0].Policy != "look" || report.Tests[1].OK {
		t.Errorf("Test() = %+v", report)
	}
	if got := fmt.Sprint(report.Uncovered); got != "{[rest] [unreached]}" {
		t.Errorf("uncovered = %s", got)
	}
}

// TestTenThousandTests shows that a file may have as many tests as docs/reference/policy-language.md says.
func TestTenThousandTests(t *testing.T) {
	e := explainer(t, true, "", "- {id: look, effect: allow, deny: args.n > 20000}")
	var b strings.Builder
	b.WriteString("tests:\n")
	for i := range config.MaxPolicyTests {
		fmt.Fprintf(&b, "  - {name: t%d, expect: allow, input: {server: %s, tool: look, args: {n: %d}}}\n", i, statestest.Server, i)
	}
	file := filepath.Join(t.TempDir(), "many.yaml")
	check.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	report, err := e.Test([]string{file}, os.ReadFile)
	check.NoError(t, err)
	if len(report.Tests) != 10_000 {
		t.Errorf("Test() = %d results", len(report.Tests))
	}
}
