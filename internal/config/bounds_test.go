package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/glob"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// A bounded key is written with a number: the largest that it takes, or with step -1 the least.
type bounded struct {
	name  string
	bound int
	text  func(n int) string
	step  int
}

// many writes n entries, with their number for each %d.
func many(n int, each string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = strings.ReplaceAll(each, "%d", fmt.Sprint(i))
	}
	return strings.Join(items, ", ")
}

// entries, letters and value put n entries, a text of n bytes, and the number itself into a form, in the place of #.
func entries(each, form string) func(int) string {
	return func(n int) string { return strings.Replace(form, "#", many(n, each), 1) }
}

func letters(form string) func(int) string {
	return func(n int) string { return strings.Replace(form, "#", strings.Repeat("a", n), 1) }
}

func value(form string) func(int) string {
	return func(n int) string { return strings.Replace(form, "#", fmt.Sprint(n), 1) }
}

// filled is a text with a comment behind it that makes it as long.
func filled(text string) func(int) string {
	return func(n int) string { return text + strings.Repeat("#", n-len(text)) }
}

// TestBounds shows that what is just within every bound is read, and that one more is not.
func TestBounds(t *testing.T) {
	const (
		policies = "version: 1\npolicies: [#]\n"
		server   = "version: 1\nallowlist: a\nservers: {s: {command: x, #}}\n"
		model    = minimal + `planner: {llm: {base_url: "http://h", #}}`
		hour     = int(time.Hour / time.Millisecond)
	)
	hold := func(s string) string { return "version: 1\npolicies: [{id: a, effect: pending, " + s + "}]\n" }
	risks := func(s string) string { return "version: 1\n" + s + "\n" }
	rule := func(s string) string { return risks("rules: [{id: a, escalate: one_level, " + s + "}]") }
	args := func(s string) string { return rule("when: {args: {" + s + "}}") }
	grant := func(s string) string { return "version: 1\ntools: {" + s + "}\n" }
	read := func(s string) string { return grant("docs: {read: {" + s + "}}") }
	in := func(form, s string) string { return strings.Replace(form, "#", s, 1) }
	for _, file := range []struct {
		name string
		read func(text string) error
		keys []bounded
	}{
		{"configuration", func(text string) error { _, err := Parse("c.yaml", []byte(text)); return err }, []bounded{
			{"servers", policy.MaxServers, entries("s%d: {command: x}", "version: 1\nallowlist: a\nservers: {#}\n"), 1},
			{"routes", policy.MaxRoutes, entries("{id: r%d, pattern: x, server: docs, tool: t}", minimal+"planner: {routes: [#]}"), 1},
			{"deny-rules", MaxDenyRules, entries("{id: r%d, pattern: x, reason: r}", minimal+"input: {deny: [#]}"), 1},
			{"args", MaxArgs, entries("a", in(server, "args: [#]")), 1},
			{"pattern-bytes", MaxPatternBytes, letters(minimal + "input: {deny: [{id: r, pattern: #, reason: r}]}"), 1},
			{"text-bytes", maxTextBytes, func(n int) string {
				return in(server, "env: {A: "+strings.Repeat("é", n/2)+strings.Repeat("x", n%2)+"}")
			}, 1},
			{"file-bytes", MaxFileBytes, filled(minimal), 1},
			{"nesting", MaxDepth - 5, func(n int) string {
				return minimal + "planner: {routes: [{id: a, pattern: b, server: docs, tool: t, args: {a: " +
					strings.Repeat("[", n) + strings.Repeat("]", n) + "}}]}\n"
			}, 1},
			{"plan-bytes", 1 << 20, value(minimal + "limits: {plan_bytes: #}"), 1},
			{"timeout", hour, func(n int) string { return in(server, fmt.Sprintf("timeout: %dms, timeout_total: %[1]dms", n)) }, 1},
			{"connect-timeout", hour, value(in(server, "connect_timeout: #ms")), 1},
			{"timeout-total", hour, value(in(server, "timeout: 1h, timeout_total: #ms")), -1},
			{"model-bytes", MaxModelBytes, letters(in(model, "model: #")), 1},
			{"max-tokens", 131072, value(in(model, "model: m, max_tokens: #")), 1},
			{"roles", MaxRoles, entries("r%d: [a]", minimal+"roles: {#}\n"), 1},
			{"actors", MaxActors, entries("a%d", minimal+"roles: {r: [#]}\n"), 1},
			{"actor", MaxActorBytes, letters(minimal + "roles: {r: [#]}\n"), 1},
			{"grants", policy.MaxGrants, entries("g%d.yaml", minimal+"grants: [#]\n"), 1},
		}},
		{"policies", func(text string) error { _, _, err := ReadPolicy("p.yaml", []byte(text)); return err }, []bounded{
			{"policies", rules.MaxPolicies, entries("{id: p%d, effect: deny}", policies), 1},
			{"shadow-policies", rules.MaxShadow, entries("{id: p%d, effect: deny, mode: shadow}", policies), 1},
			{"id", rules.MaxID, letters(in(policies, "{id: #, effect: deny}")), 1},
			{"reason", rules.MaxReason, letters(hold("reason: #")), 1},
			{"glob", glob.MaxPattern, letters(hold("match: {tool: #}")), 1},
			{"stars", glob.MaxStars, func(n int) string { return hold(`match: {tool: "` + strings.Repeat("*a", n) + `"}`) }, 1},
			{"condition", condition.MaxSource, func(n int) string {
				return hold(`when: "pinned` + strings.Repeat(" ", n-len("pinned")) + `"`)
			}, 1},
			{"approvers", rules.MaxApprovers, entries("a%d", hold("approvers: [#]")), 1},
			{"fewest-approvers", 1, entries("a%d", hold("approvers: [#]")), -1},
			{"approver", rules.MaxApprover, letters(hold("approvers: [#]")), 1},
			{"quorum", 16, value(hold("quorum: #")), 1},
			{"least-quorum", 1, value(hold("quorum: #")), -1},
			{"expires", 720 * 3600, value(hold("expires: #s")), 1},
			{"least-expires", 1000, value(hold("expires: #ms")), -1},
			{"fresh", 12 * 3600, value(hold("fresh: #s")), 1},
			{"least-fresh", 30_000, value(hold("fresh: #ms")), -1},
			{"bytes", MaxPolicyFileBytes, filled(in(policies, "")), 1},
		}},
		{"risk-rules", func(text string) error { _, _, err := ReadRisk("r.yaml", []byte(text)); return err }, []bounded{
			{"modes", risk.MaxModes, entries("m%d: 0", risks("modes: {#}")), 1},
			{"baseline", 1000, value(risks("modes: {a: #}")), 1},
			{"least-baseline", 0, value(risks("modes: {a: #}")), -1},
			{"mode-name", risk.MaxNameBytes, letters(risks("modes: {#: 0}")), 1},
			{"vars", risk.MaxVars, entries(`v%d: "1"`, risks("vars: {#}")), 1},
			{"var-name", condition.MaxVarName, letters(risks(`vars: {#: "1"}`)), 1},
			{"rules", risk.MaxRules, entries("{id: r%d, escalate: one_level}", risks("rules: [#]")), 1},
			{"paths", risk.MaxPredicates, entries("a%d: {eq: 1}", args("#")), 1},
			{"predicates", risk.MaxPredicates, func(n int) string {
				return args(many(n/2, "a%d: {gte: 1, lt: 2}") + strings.Repeat(", b: {eq: 1}", n%2))
			}, 1},
			{"path", risk.MaxPathBytes, letters(args("#: {eq: 1}")), 1},
			{"in", risk.MaxIn, entries("%d", args("a: {in: [#]}")), 1},
			{"fewest-in", 1, entries("%d", args("a: {in: [#]}")), -1},
			{"pattern", risk.MaxPatternBytes, letters(args("a: {matches: #}")), 1},
			{"reason", risk.MaxReasonBytes, letters(rule("reason: #")), 1},
			{"thresholds", risk.MaxThresholds, func(n int) string {
				var by []string
				for i := range n {
					by = append(by, fmt.Sprintf("m%d: score >= %d.0", i, i*10))
				}
				slices.Reverse(by)
				return risks("modes: {" + many(n, "m%d: 0") + "}\nset_mode_by_score: {" + strings.Join(by, ", ") + "}")
			}, 1},
		}},
		{"grant", readAndCompile, []bounded{
			{"servers", policy.MaxServers, entries("s%d: {}", grant("#")), 1},
			{"tools-of-a-server", policy.MaxGrantTools, entries("t%d: {}", grant("s: {#}")), 1},
			{"tools-of-all-servers", policy.MaxGrantTools - 1, entries("t%d: {}", grant("r: {t: {}}, s: {#}")), 1},
			{"arguments", policy.MaxGrantArgs, entries("a%d: {eq: 1}", read("args: {#}")), 1},
			{"choices", MaxChoices, entries("%d", read("args: {a: {in: [#]}}")), 1},
			{"calls", 1_000_000, value(read("calls: #")), 1},
			{"fewest-calls", 1, value(read("calls: #")), -1},
		}},
	} {
		for _, c := range file.keys {
			t.Run(file.name+"/"+c.name, func(t *testing.T) {
				if err := file.read(c.text(c.bound)); err != nil {
					t.Errorf("at the bound %d: %v, want no error", c.bound, err)
				}
				if err := file.read(c.text(c.bound + c.step)); err == nil {
					t.Errorf("past the bound %d: no error", c.bound)
				}
			})
		}
	}
}

// readAndCompile reads a grant, and holds what is accepted to what the gate takes.
func readAndCompile(text string) error {
	g, err := ReadGrant("g.yaml", []byte(text))
	if err != nil {
		return err
	}
	_, err = policy.Compile(policy.Content{Grants: []policy.Grant{g}})
	if err != nil && !strings.Contains(err.Error(), "grant") {
		return nil // the rest of a configuration is not there
	}
	return err
}
