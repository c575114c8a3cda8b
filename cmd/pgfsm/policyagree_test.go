package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/cli"
	"pgfsm/internal/runner/explain"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/policy/rules"
)

// hinted are tools with different annotations.
var hinted = []struct{ name, annotations string }{
	{"silent", ""},
	{"reads", `{"readOnlyHint":true,"openWorldHint":false}`},
	{"writes", `{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true}`},
	{"destroys", `{"destructiveHint":true,"idempotentHint":false,"title":"Destroy"}`},
}

func hintedTools() (tools []string) {
	for _, h := range hinted {
		tool := fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}`, h.name)
		if h.annotations != "" {
			tool += `,"annotations":` + h.annotations
		}
		tools = append(tools, tool+"}")
	}
	return tools
}

const hintedAllowlist = `{"puppet":["silent","reads","writes","destroys"]}`

// hintedFolder is a configuration for these tools, pinned or not, with risk rules and policies.
func hintedFolder(t *testing.T, pin bool, risk, policies string) *pinned {
	t.Helper()
	p := newPinned(t, hintedAllowlist, hintedTools()...)
	p.writes("risk.yaml", risk)
	p.writes("policy.yaml", policies)
	config := strings.Replace(p.text("pgfsm.yaml"), "version: 1\n", "version: 1\nenv: prod\nrisk: risk.yaml\npolicy: policy.yaml\ninput: {defaults: false}\n", 1)
	p.writes("pgfsm.yaml", config)
	if pin {
		p.pins("approve").Want(t, cli.ExitYes)
	}
	return p
}

func (p *pinned) writes(name, text string) {
	p.t.Helper()
	check.NoError(p.t, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600))
}

// decisionOfRun returns the policy's decision from the document of a run.
func decisionOfRun(t *testing.T, r clitest.Result) string {
	t.Helper()
	switch {
	case r.Code == cli.ExitYes && r.Member("/type") == "tool_result":
		return rules.Allow
	case r.Code == cli.ExitPending && r.Member("/code") == "approval_required":
		return rules.Pending
	case r.Code == cli.ExitNo && strings.HasPrefix(r.Member("/code"), "policy_"):
		return rules.Deny
	}
	t.Fatalf("run = %+v, want a decision of the policy", r)
	return ""
}

// TestPolicyCommandsAgreeWithRun shows that explain, test, diff and replay decide about every tool as a run did, by any policy that asks for
// pins and annotations.
func TestPolicyCommandsAgreeWithRun(t *testing.T) {
	t.Parallel()
	const noRisk = "version: 1\n"
	const byHint = "version: 1\nrules:\n" +
		"  - {id: again, score_expr: \"tool_annotations.idempotentHint ? 10.0 : 95.0\"}\n" +
		"  - {id: kept, score_expr: \"pinned ? score / 2.0 : score\"}\nset_mode_by_score: {danger: score >= 90.0}\n"
	seen := make(map[string]int)
	for _, tt := range []struct{ name, risk, policies string }{
		{"pinned-only", noRisk, "- {id: a, effect: allow, deny: \"!pinned\"}"},
		{"destructive-waits", noRisk, "- {id: a, effect: allow, require_approval_if: tool_annotations.destructiveHint}"},
		{"readers-only", noRisk, "- {id: a, when: tool_annotations.readOnlyHint, effect: allow}"},
		{"pinned-and-open-waits", noRisk, "- {id: a, when: pinned && tool_annotations.openWorldHint, effect: pending}\n- {id: b, effect: allow}"},
		{"risk-by-hints", byHint, "- {id: a, effect: allow, deny: \"risk.mode == 'danger'\", require_approval_if: risk.score > 40}"},
	} {
		for _, pin := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s-pinned-%t", tt.name, pin), func(t *testing.T) {
				p := hintedFolder(t, pin, tt.risk, "version: 1\npolicies:\n"+tt.policies+"\n")
				for _, word := range agreeing(t, p, pin) {
					seen[word]++
				}
			})
		}
	}
	for _, word := range []string{rules.Allow, rules.Deny, rules.Pending} {
		if seen[word] < 5 {
			t.Errorf("%d decisions are %s, want at least 5: the policies show too little", seen[word], word)
		}
	}
}

// agreeing calls each tool, and compares the decision with those of the other commands.
func agreeing(t *testing.T, p *pinned, pin bool) (words []string) {
	t.Helper()
	tests, bare := "tests:\n", "tests:\n"
	for i, h := range hinted {
		word := decisionOfRun(t, p.command("call", "--json", "puppet", h.name, "{}"))
		words = append(words, word)
		hints := strings.Replace(cmp.Or(h.annotations, "{}"), `,"title":"Destroy"`, "", 1)
		ways := map[string][]string{
			"given": {"--annotations", hints, fmt.Sprintf("--pinned=%t", pin)}, "live": {"--live"},
			"live-and-given": {"--live", "--annotations", hints},
		}
		if pin {
			ways["kept"] = nil
		}
		for how, flags := range ways { // each alone
			args := append([]string{"policy", "explain", "-c", p.config, "--json", "--server", "puppet", "--tool", h.name}, flags...)
			r := command(t.Context(), nil, args...)
			decision := word
			if !pin && how == "given" && word != rules.Deny {
				decision = explain.Unknown // the schema is
			}
			r.Want(t, decisionExit[decision], "/decision", decision, "/gates/6/gate", "policy", "/gates/6/verdict", word, "/known/pinned", fmt.Sprint(pin))
			if t.Failed() {
				t.Fatalf("explain, %s, of %s: want %s", how, h.name, word)
			}
		}
		test := fmt.Sprintf("  - {name: t%d, expect: %s, input: {server: puppet, tool: %s", i, word, h.name)
		bare += test + "}}\n"
		tests += fmt.Sprintf("%s, pinned: %t, annotations: %s}}\n", test, pin, yamlHints(hints))
	}
	p.writes("tests.yaml", tests)
	p.writes("bare.yaml", bare)
	command(t.Context(), nil, "policy", "test", "-c", p.config, filepath.Join(p.dir, "tests.yaml")).Want(t, cli.ExitYes)
	if pin {
		command(t.Context(), nil, "policy", "test", "-c", p.config, filepath.Join(p.dir, "bare.yaml")).Want(t, cli.ExitYes)
	}
	past := filepath.Join(p.dir, "traces")
	command(t.Context(), nil, "replay", past).Want(t, cli.ExitYes)
	diff := command(t.Context(), nil, "policy", "diff", filepath.Join(p.dir, "policy.yaml"), p.dir, "--traces", past, "--json")
	diff.Want(t, cli.ExitYes, "/judged", fmt.Sprint(len(hinted)), "/changed", "[]")
	for i, pair := range [][2]string{{"allow", "allow"}, {"pending", "pending"}, {"deny", "deny"}} {
		n := 0
		for _, word := range words {
			if word == pair[0] {
				n++
			}
		}
		diff.Want(t, cli.ExitYes, fmt.Sprintf("/decisions/%d/calls", i*4), fmt.Sprint(n))
	}
	return words
}

// yamlHints writes a JSON object as YAML in one line.
func yamlHints(doc string) string { return strings.NewReplacer(`"`, "", ":", ": ").Replace(doc) }
