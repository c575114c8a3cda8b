package ctrl_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy/ctrl"
	"pgfsm/policy/rules"
)

const somePolicy = "policies:\n- {id: p, match: {server: s}, effect: allow}\n"

const someRisk = "risk:\n  modes: {safe: {score: 0}, review: {score: 50}, danger: {score: 90}}\n"

func TestFaults(t *testing.T) {
	tests := []struct{ name, policy, risk, want string }{
		{"no-policies", "policies: []\n", "", "policy.yaml:1:1: it has no policies"},
		{"empty", "", "", "policy.yaml: it must hold one YAML document"},
		{"a-list", "- a\n", "", "policy.yaml:1:1: it must be a mapping"},
		{"not-yaml", "policies: [", "", "policy.yaml:1:11: not YAML: "},
		{"two-documents", somePolicy + "---\na: 1\n", "", "policy.yaml: it must hold one YAML document"},
		{"not-utf-8", "policies: \xff\n", "", "policy.yaml: it is not text in UTF-8"},
		{"a-tab", "policies:\t[]\n", "", "policy.yaml:1:1: it holds a tab"},
		{"an-anchor", "policies: &a []\n", "", "anchors, aliases"},
		{"key-twice", "policies: []\npolicies: []\n", "", "policy.yaml:2:1: "},
		{"yes", "policies:\n- {id: p, match: {}, effect: allow, reason: yes}\n", "", `"yes" is read differently`},
		{"octal", "policies:\n- {id: p, match: {}, effect: allow, reason: 010}\n", "", `"010" is read differently`},
		{"reason-a-number", "policies:\n- {id: p, match: {}, effect: allow, reason: 10}\n", "",
			"it must be a text, not a number"},
		{"when-that-ctrl-ignores", "policies:\n- {id: p, match: {}, effect: allow, when: a}\n", "",
			`ctrl passes over the key "when"`},
		{"misspelt-condition", "policies:\n- {id: p, match: {}, effect: allow, require_aproval_if: a}\n", "",
			`"require_aproval_if"`},
		{"match-missing", "policies:\n- {id: p, effect: allow}\n", "", "policy.yaml:2:4: a policy has a match"},
		{"id-missing", "policies:\n- {match: {}, effect: allow}\n", "", "id: there is no id"},
		{"id-twice", somePolicy + "- {id: p, match: {}, effect: deny}\n", "",
			"policy.yaml:3:4: id: policy 0 has the same id"},
		{"effect", "policies:\n- {id: p, match: {}, effect: maybe}\n", "",
			"policy.yaml:2:30: the effect must be allow, deny or pending"},
		{"control-character", "policies:\n- {id: p, match: {tool: \"a\\b\"}, effect: deny}\n", "", "do not show"},
		{"glob-too-long", "policies:\n- {id: p, match: {tool: '" + strings.Repeat("*a", 17) + "'}, effect: deny}\n",
			"", "match.tool"},
		{"no-risk-key", somePolicy, "modes: {}\n", "there is no key risk"},
		{"mode-missing", somePolicy, "risk:\n  modes: {safe: {score: 0}, review: {score: 1}}\n", "there is no mode danger"},
		{"mode-of-ones-own", somePolicy, strings.Replace(someRisk, "}}", "}, worse: {score: 100}}", 1), `the key "worse"`},
		{"score-101", somePolicy, strings.Replace(someRisk, "90", "101", 1), "a whole number, 0 to 100"},
		{"score-a-text", somePolicy, strings.Replace(someRisk, "90", "'90'", 1), "a whole number, 0 to 100"},
		{"risk-mode", somePolicy, someRisk + "  mode: points\n", "only mode: modes is read"},
		{"variable-name", somePolicy, someRisk + "  vars: {in: '1'}\n", `"in" cannot be the name of a variable`},
		{"when-missing", somePolicy, someRisk + "  rules: [{name: r, set_mode: danger}]\n", "a rule has a when"},
		{"op-that-ctrl-ignores", somePolicy, someRisk +
			"  rules: [{when: {args: {a: {matches: x}}}, set_mode: danger}]\n", `the key "matches"`},
		{"predicate-empty", somePolicy, someRisk + "  rules: [{when: {args: {a: {}}}, set_mode: danger}]\n",
			"a predicate has an op"},
		{"predicate-list", somePolicy, someRisk + "  rules: [{when: {args: {a: {eq: [1]}}}, set_mode: danger}]\n",
			"not a list"},
		{"in-a-text", somePolicy, someRisk + "  rules: [{when: {args: {a: {in: abc}}}, set_mode: danger}]\n",
			"it must be a list, not a text"},
		{"gt-a-text", somePolicy, someRisk + "  rules: [{when: {args: {a: {gt: '1'}}}, set_mode: danger}]\n",
			"gt takes a number"},
		{"set-mode", somePolicy, someRisk + "  rules: [{when: {}, set_mode: worse}]\n", `there is no mode "worse"`},
		{"escalate", somePolicy, someRisk + "  rules: [{when: {}, escalate: two_levels}]\n",
			"escalate is one_level or not there"},
		{"threshold-mode", somePolicy, someRisk + "  set_mode_by_score: {worse: 'True'}\n", `there is no mode "worse"`},
		{"deep", "policies: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "\n", "", "deeper than 16 levels"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ctrl.Import(bundle(tt.policy, tt.risk))
			var faults ctrl.Faults
			if !errors.As(err, &faults) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Import = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestFaultsAllAtOnce(t *testing.T) {
	files := bundle("policies:\n- {id: p, match: {}, effect: maybe, x: 1}\n", "risk: 1\n")
	files[ctrl.ServersFile] = &fstest.MapFile{Data: []byte(
		"servers: [{name: a, base_url: u, transport: stdio}, {name: a, base_url: u}, {}]\n")}
	_, err := ctrl.Import(files)
	if got := strings.Count(err.Error(), "\n") + 1; got != 6 {
		t.Errorf("Import = %d faults, want 6:\n%v", got, err)
	}
}

func TestFilesThatAreNotThere(t *testing.T) {
	if _, err := ctrl.Import(fstest.MapFS{}); err == nil || !strings.Contains(err.Error(),
		"policy.yaml: it cannot be read") {
		t.Errorf("Import of nothing = %v, want a fault", err)
	}
	r, err := ctrl.Import(bundle(somePolicy, ""))
	if err != nil || r.Risk != nil || r.Servers != nil {
		t.Errorf("Import of policies alone = %+v, %v, want no more", r, err)
	}
}

func TestFileOfMaxSize(t *testing.T) {
	for more, ok := range map[int]bool{0: true, 1: false} {
		policy := somePolicy + "#" + strings.Repeat("x", ctrl.MaxFile-len(somePolicy)-2+more) + "\n"
		if _, err := ctrl.Import(bundle(policy, "")); (err == nil) != ok {
			t.Errorf("Import of %d bytes = %v, want ok %t", len(policy), err, ok)
		}
	}
}

// What nests deep is refused before it is parsed: the parser needs memory by the square of the depth.
func TestNesting(t *testing.T) {
	tests := []struct{ name, open, shut string }{{"brackets", "[", "]"}, {"braces", "{a: ", "}"}, {"dashes", "- ", ""}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, depth := range []int{ctrl.MaxDepth, ctrl.MaxDepth + 1, 1000, 100_000} {
				text := "policies:\n  " + strings.Repeat(tt.open, depth) + "1" + strings.Repeat(tt.shut, depth) + "\n"
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := ctrl.Import(bundle(text, ""))
				runtime.ReadMemStats(&after)
				if used := after.TotalAlloc - before.TotalAlloc; used > uint64(1<<22+2000*len(text)) {
					t.Errorf("depth %d: %d bytes were used for a file of %d", depth, used, len(text))
				}
				deep := err != nil && strings.Contains(err.Error(), "it nests deeper than 16 levels")
				if err == nil || deep != (depth >= ctrl.MaxDepth) { // it stands under a key
					t.Errorf("Import of depth %d = %.300v, want too deep %t", depth, err, depth >= ctrl.MaxDepth)
				}
			}
		})
	}
	for text, want := range map[string]string{ // in any order: each is judged alone
		"policies:\n" + strings.Repeat("? ", 50_000):            "complex keys (?) are not read",
		"policies: [" + strings.Repeat("0,", 1<<19-10) + "1]\n": "words and signs, more than 524288",
	} {
		if _, err := ctrl.Import(bundle(text, "")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Import of %.20q… = %.200v, want %q", text, err, want)
		}
	}
}

// Many policies that an earlier one leaves nothing to are each reported, and each above its own policy.
func TestManyShadowed(t *testing.T) {
	var b strings.Builder
	b.WriteString("policies:\n- {id: first, match: {tool: 'x*'}, effect: allow}\n")
	const n = 5000
	for k := range n {
		fmt.Fprintf(&b, "- {id: p%d, match: {tool: 'x%d*'}, effect: pending}\n", k, k)
	}
	r, err := ctrl.Import(bundle(b.String(), ""))
	if err != nil {
		t.Fatal(err)
	}
	text := r.PolicyYAML()
	if len(r.Findings) != n || strings.Count(text, "# approval_shadowed: ") != n {
		t.Errorf("Import = %d findings, %d written, want %d", len(r.Findings), strings.Count(text, "# approval_shadowed: "), n)
	}
	for _, k := range []int{0, n - 1} {
		own := fmt.Sprintf("; the order is kept; move \"p%d\" above \"first\"\n  - id: \"p%d\"\n", k, k)
		if !strings.Contains(text, own) {
			t.Errorf("policy.yaml does not hold %q", own)
		}
	}
}

// A fault of all policies has no key in front of it.
func TestTooManyPolicies(t *testing.T) {
	var b strings.Builder
	b.WriteString("policies:\n")
	for k := range rules.MaxPolicies + 1 {
		fmt.Fprintf(&b, "- {id: p%d, match: {tool: x%d}, effect: allow}\n", k, k)
	}
	_, err := ctrl.Import(bundle(b.String(), ""))
	if err == nil || !strings.HasPrefix(err.Error(), "policy.yaml:10002:4: there are 10001") {
		t.Errorf("Import of too many policies = %.200v, want how many there are", err)
	}
}

// A hold for one mode alone is lifted by whatever raises the mode, as an expression that fails does.
func TestMoreRiskIsMilder(t *testing.T) {
	for _, tt := range []struct{ name, conditions, key string }{
		{"one-mode", `require_approval_if: "risk.mode in ['review']"`, "require_approval_if"},
		{"one-mode-by-equality", `require_approval_if: "risk.mode == 'review'"`, "require_approval_if"},
		{"denial-of-one-mode", `deny: "risk.mode == 'review'"`, "deny"},
		{"danger-is-denied", `require_approval_if: "risk.mode in ['review']", deny: "risk.mode == 'danger'"`, ""},
		{"both-modes", `require_approval_if: "risk.mode in ['review', 'danger']"`, ""},
		{"by-score", `require_approval_if: "risk.score >= 50"`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := ctrl.Import(bundle("policies:\n- {id: held, match: {tool: 'x'}, effect: allow, "+tt.conditions+"}\n", someRisk))
			if err != nil {
				t.Fatal(err)
			}
			key := ""
			for _, f := range r.Findings {
				if f.Code == ctrl.MoreRiskIsMilder && f.ID == "held" && f.Line > 0 {
					key = f.Key
				}
			}
			if key != tt.key {
				t.Errorf("Import reports %q, want %q:\n%s", key, tt.key, report(r))
			}
		})
	}
}

func TestServers(t *testing.T) {
	r := mustImport(t, "testdata/deploys")
	if diff := cmp.Diff([]ctrl.Server{{Name: "ci", URL: "http://127.0.0.1:9101/mcp"}}, r.Servers); diff != "" ||
		r.Env != "dev" {
		t.Errorf("servers (-want +got):\n%s, env %q, want dev", diff, r.Env)
	}
}

// Every code is found in a bundle, and not in one without a fault.
func TestEveryCode(t *testing.T) {
	var all []string
	for _, folder := range bundles(t) {
		for _, f := range mustImport(t, folder).Findings {
			all = append(all, f.Code)
		}
	}
	for _, files := range []fstest.MapFS{
		bundle("version: 1\npolicies:\n- {id: a, match: {tool: 'x_*'}, effect: deny, deny: 'True'}\n"+
			"- {id: b, match: {tool: x_a}, effect: deny}\n",
			someRisk[:strings.Index(someRisk, "90")]+"40}}\n  rules: [{when: {}, score_expr: "+
				"\"60 if args.get('force') else round(score)\"}, {when: {}}]\n"),
		withExpression("deny", "env == 'prod'"),
		withExpression("deny", "risk.mode in ['review']"),
	} {
		r, err := ctrl.Import(files)
		if err != nil {
			t.Fatal(err)
		}
		checkWritten(t, r)
		for _, f := range r.Findings {
			all = append(all, f.Code)
		}
	}
	for _, code := range ctrl.Codes() {
		if code.Meaning == "" || !slices.Contains(all, code.Code) {
			t.Errorf("the code %s is found nowhere", code.Code)
		}
		all = slices.DeleteFunc(all, func(c string) bool { return c == code.Code })
	}
	if len(all) > 0 {
		t.Errorf("codes that Codes does not list: %q", all)
	}
	if r := mustImport(t, "testdata/sandbox"); len(r.Findings) > 0 {
		t.Errorf("a bundle without a fault has findings: %s", report(r))
	}
}

func TestGlobs(t *testing.T) {
	for pattern, want := range map[string]string{
		"a*b?": "a*b?", "a[bc]d": "a?d", "a[!b]": "a?", "a[]b]c": "a?c", "a[!]]": "a?", "a[b": "a[b", "[a][b]*": "??*",
	} {
		r, err := ctrl.Import(bundle("policies:\n- {id: p, match: {tool: "+quoted(pattern)+"}, effect: allow}\n", ""))
		if err != nil {
			t.Fatal(err)
		}
		p := r.Policy.Policies[0]
		effect := rules.Allow
		if want != pattern {
			effect = rules.Deny
		}
		if p.Match.Tool != want || p.Effect != effect {
			t.Errorf("%s = %s, %s, want %s, %s", pattern, p.Match.Tool, p.Effect, want, effect)
		}
	}
}

// Whatever an expression holds, what is imported compiles, and is read again as what was meant.
func FuzzExpression(f *testing.F) {
	for _, e := range []string{"risk.mode in ['review']", "max(score, 70 + min(n or 0, 100)/4)",
		"1 < a < 3 not in [2]", "'x' in args.get('a', '')",
		"(args.get('amount', 0) or 0) / 1000", "not 1 < 2 < 3 and a", "9**9**9", "'\\x85\\u2028' == a",
		"'\\u202e\\ufe0f\\U000e0041' in a", "args['\\u200b'] == '\\u2800\\u00a0'", "a if b else c"} {
		f.Add(e)
	}
	f.Fuzz(func(t *testing.T, e string) {
		for _, where := range []string{"deny", "vars", "score_expr", "danger"} {
			r, err := ctrl.Import(withExpression(where, strings.ToValidUTF8(e, "")))
			if err != nil {
				continue // of a text that YAML reads differently
			}
			checkWritten(t, r)
		}
	})
}

// Whatever a file holds, Import ends, with faults or with what compiles.
func FuzzImport(f *testing.F) {
	for _, folder := range []string{"sandbox", "deploys", "money", "changes", "records"} {
		policy, err := os.ReadFile(filepath.Join("testdata", folder, ctrl.PolicyFile))
		if err != nil {
			f.Fatal(err)
		}
		risk, _ := os.ReadFile(filepath.Join("testdata", folder, ctrl.RiskFile))
		f.Add(string(policy), string(risk))
	}
	f.Fuzz(func(t *testing.T, policy, risk string) {
		if r, err := ctrl.Import(bundle(policy, risk)); err == nil {
			checkWritten(t, r)
		}
	})
}
