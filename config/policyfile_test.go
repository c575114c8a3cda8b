package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy/condition"
	"pgfsm/policy/glob"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// numbered writes n entries, with their number for each %d.
func numbered(n int, each, between string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = strings.ReplaceAll(each, "%d", fmt.Sprint(i))
	}
	return strings.Join(items, between)
}

// TestPolicyBounds shows that what is just within every bound is read, and that one more is not.
func TestPolicyBounds(t *testing.T) {
	const empty = "version: 1\npolicies: []\n"
	list := func(s string) string { return "version: 1\npolicies:\n" + s + "\n" }
	hold := func(s string) string { return list("  - {id: a, effect: pending, " + s + "}") }
	when := func(n int) string { return hold(`when: "pinned` + strings.Repeat(" ", n-len("pinned")) + `"`) }
	for _, c := range []struct{ name, within, past string }{
		{"policies", list(numbered(rules.MaxPolicies, "  - {id: p%d, effect: deny}", "\n")),
			list(numbered(rules.MaxPolicies+1, "  - {id: p%d, effect: deny}", "\n"))},
		{"shadow-policies", list(numbered(rules.MaxShadow, "  - {id: p%d, effect: deny, mode: shadow}", "\n")),
			list(numbered(rules.MaxShadow+1, "  - {id: p%d, effect: deny, mode: shadow}", "\n"))},
		{"id", list("  - {id: " + strings.Repeat("a", rules.MaxID) + ", effect: deny}"),
			list("  - {id: " + strings.Repeat("a", rules.MaxID+1) + ", effect: deny}")},
		{"reason", hold("reason: " + strings.Repeat("r", rules.MaxReason)),
			hold("reason: " + strings.Repeat("r", rules.MaxReason+1))},
		{"glob", hold("match: {tool: " + strings.Repeat("g", glob.MaxPattern) + "}"),
			hold("match: {tool: " + strings.Repeat("g", glob.MaxPattern+1) + "}")},
		{"stars", hold(`match: {tool: "` + strings.Repeat("*a", glob.MaxStars) + `"}`),
			hold(`match: {tool: "` + strings.Repeat("*a", glob.MaxStars+1) + `"}`)},
		{"condition", when(condition.MaxSource), when(condition.MaxSource + 1)},
		{"approvers", hold("approvers: [" + numbered(rules.MaxApprovers, "a%d", ", ") + "]"),
			hold("approvers: [" + numbered(rules.MaxApprovers+1, "a%d", ", ") + "]")},
		{"fewest-approvers", hold("approvers: [a]"), hold("approvers: []")},
		{"approver", hold("approvers: [" + strings.Repeat("a", rules.MaxApprover) + "]"),
			hold("approvers: [" + strings.Repeat("a", rules.MaxApprover+1) + "]")},
		{"quorum", hold("quorum: 16"), hold("quorum: 17")},
		{"least-quorum", hold("quorum: 1"), hold("quorum: 0")},
		{"expires", hold("expires: 720h"), hold("expires: 2592000001ms")},
		{"least-expires", hold("expires: 1s"), hold("expires: 999ms")},
		{"bytes", empty + strings.Repeat("#", MaxPolicyFileBytes-len(empty)),
			empty + strings.Repeat("#", MaxPolicyFileBytes-len(empty)+1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := ReadPolicy("p.yaml", []byte(c.within)); err != nil {
				t.Errorf("ReadPolicy at the bound = %v, want no error", err)
			}
			if _, _, err := ReadPolicy("p.yaml", []byte(c.past)); err == nil {
				t.Error("ReadPolicy one past the bound = nil, want an error")
			}
		})
	}
}

// TestRiskBounds does the same for risk rules.
func TestRiskBounds(t *testing.T) {
	file := func(s string) string { return "version: 1\n" + s + "\n" }
	rule := func(s string) string { return file("rules: [{id: a, escalate: one_level, " + s + "}]") }
	args := func(s string) string { return rule("when: {args: {" + s + "}}") }
	thresholds := func(n int) string {
		var modes, by []string
		for i := range n {
			modes = append(modes, fmt.Sprintf("m%d: 0", i))
			by = append(by, fmt.Sprintf("m%d: score >= %d.0", i, i*10))
		}
		slices.Reverse(by)
		return file("modes: {" + strings.Join(modes, ", ") + "}\nset_mode_by_score: {" + strings.Join(by, ", ") + "}")
	}
	for _, c := range []struct{ name, within, past string }{
		{"modes", file("modes: {" + numbered(risk.MaxModes, "m%d: 0", ", ") + "}"),
			file("modes: {" + numbered(risk.MaxModes+1, "m%d: 0", ", ") + "}")},
		{"baseline", file("modes: {a: 1000}"), file("modes: {a: 1001}")},
		{"least-baseline", file("modes: {a: 0}"), file("modes: {a: -1}")},
		{"mode-name", file("modes: {" + strings.Repeat("a", risk.MaxNameBytes) + ": 0}"),
			file("modes: {" + strings.Repeat("a", risk.MaxNameBytes+1) + ": 0}")},
		{"vars", file("vars: {" + numbered(risk.MaxVars, `v%d: "1"`, ", ") + "}"),
			file("vars: {" + numbered(risk.MaxVars+1, `v%d: "1"`, ", ") + "}")},
		{"var-name", file("vars: {" + strings.Repeat("a", condition.MaxVarName) + `: "1"}`),
			file("vars: {" + strings.Repeat("a", condition.MaxVarName+1) + `: "1"}`)},
		{"rules", file("rules: [" + numbered(risk.MaxRules, "{id: r%d, escalate: one_level}", ", ") + "]"),
			file("rules: [" + numbered(risk.MaxRules+1, "{id: r%d, escalate: one_level}", ", ") + "]")},
		{"paths", args(numbered(risk.MaxPredicates, "a%d: {eq: 1}", ", ")),
			args(numbered(risk.MaxPredicates+1, "a%d: {eq: 1}", ", "))},
		{"predicates", args(numbered(risk.MaxPredicates/2, "a%d: {gte: 1, lt: 2}", ", ")),
			args(numbered(risk.MaxPredicates/2, "a%d: {gte: 1, lt: 2}", ", ") + ", b: {eq: 1}")},
		{"path", args(strings.Repeat("a", risk.MaxPathBytes) + ": {eq: 1}"),
			args(strings.Repeat("a", risk.MaxPathBytes+1) + ": {eq: 1}")},
		{"in", args("a: {in: [" + numbered(risk.MaxIn, "%d", ", ") + "]}"),
			args("a: {in: [" + numbered(risk.MaxIn+1, "%d", ", ") + "]}")},
		{"fewest-in", args("a: {in: [1]}"), args("a: {in: []}")},
		{"pattern", args("a: {matches: " + strings.Repeat("a", risk.MaxPatternBytes) + "}"),
			args("a: {matches: " + strings.Repeat("a", risk.MaxPatternBytes+1) + "}")},
		{"reason", rule("reason: " + strings.Repeat("r", risk.MaxReasonBytes)),
			rule("reason: " + strings.Repeat("r", risk.MaxReasonBytes+1))},
		{"thresholds", thresholds(risk.MaxThresholds), thresholds(risk.MaxThresholds + 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := ReadRisk("r.yaml", []byte(c.within)); err != nil {
				t.Errorf("ReadRisk at the bound = %v, want no error", err)
			}
			if _, _, err := ReadRisk("r.yaml", []byte(c.past)); err == nil {
				t.Error("ReadRisk one past the bound = nil, want an error")
			}
		})
	}
}

func TestRoleBounds(t *testing.T) {
	for _, c := range []struct{ name, within, past string }{
		{"roles", numbered(MaxRoles, "r%d: [a]", ", "), numbered(MaxRoles+1, "r%d: [a]", ", ")},
		{"actors", "r: [" + numbered(MaxActors, "a%d", ", ") + "]", "r: [" + numbered(MaxActors+1, "a%d", ", ") + "]"},
		{"actor", "r: [" + strings.Repeat("a", MaxActorBytes) + "]", "r: [" + strings.Repeat("a", MaxActorBytes+1) + "]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Parse("c.yaml", []byte(minimal+"roles: {"+c.within+"}\n")); err != nil {
				t.Errorf("Parse at the bound = %v, want no error", err)
			}
			if _, err := Parse("c.yaml", []byte(minimal+"roles: {"+c.past+"}\n")); err == nil {
				t.Error("Parse one past the bound = nil, want an error")
			}
		})
	}
}

// TestOpsAreKeys: each op is a key of a predicate, in the order of the manual, and no other word is.
func TestOpsAreKeys(t *testing.T) {
	var got []string
	for _, k := range predicateShape.keys {
		got = append(got, k.name)
	}
	if diff := cmp.Diff(risk.Ops(), got); diff != "" {
		t.Errorf("keys of a predicate (-want +got):\n%s", diff)
	}
}

func TestRiskDefaultsAreWrittenOut(t *testing.T) {
	files := map[string]string{"r.yaml": "version: 1\n", "m.yaml": "version: 1\nmodes: {low: 1, high: 2}\n"}
	for name, want := range map[string]*risk.Content{
		"r.yaml": {Modes: risk.DefaultModes(), Initial: risk.DefaultModes()[0].Name},
		"m.yaml": {Modes: []risk.Mode{{Name: "low", Baseline: 1}, {Name: "high", Baseline: 2}}, Initial: "low"},
	} {
		got, err := LoadRisk(name, openMap(files))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("LoadRisk(%s) (-want +got):\n%s", name, diff)
		}
	}
}

// TestNoPoliciesAreNotNoPolicy: a list that is empty denies, and so it must not get lost.
func TestNoPoliciesAreNotNoPolicy(t *testing.T) {
	files := map[string]string{"c.yaml": minimal + "policy: p.yaml\n", "allow.json": "{}",
		"p.yaml": "version: 1\npolicies: []\n"}
	l, err := Load("c.yaml", openMap(files), Overrides{})
	if err != nil || l.Content.Policy == nil || l.Content.Risk != nil {
		t.Fatalf("Load = %v, want policies, and no risk rules", err)
	}
	if l.AllowlistPath == "" {
		t.Error("the rest of the configuration is not loaded")
	}
}

// TestWhatIsWrittenOutMeansTheSame: a policy with its defaults written out decides as rules.Compile takes it without.
func TestWhatIsWrittenOutMeansTheSame(t *testing.T) {
	c, err := LoadPolicy("p.yaml", openMap(map[string]string{"p.yaml": "version: 1\npolicies:\n" +
		"  - {id: a, match: {tool: held}, effect: pending}\n  - {id: b, match: {tool: asked}, effect: allow, " +
		"require_approval_if: pinned}\n  - {id: c, effect: allow}\n"}))
	if err != nil {
		t.Fatal(err)
	}
	written, err := rules.Compile(*c)
	if err != nil {
		t.Fatal(err)
	}
	short, err := rules.Compile(rules.Content{Policies: []rules.Policy{
		{ID: "a", Match: rules.Match{Tool: "held"}, Effect: rules.Pending},
		{ID: "b", Match: rules.Match{Tool: "asked"}, Effect: rules.Allow, RequireApprovalIf: "pinned"},
		{ID: "c", Effect: rules.Allow},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for tool, effect := range map[string]string{"held": rules.Pending, "asked": rules.Pending, "other": rules.Allow} {
		in := &condition.Input{Server: "s", Tool: tool, Env: "e", Args: []byte("{}"), Pinned: true}
		got, want := written.Decide(condition.NewSubject(in)), short.Decide(condition.NewSubject(in))
		if diff := cmp.Diff(want, got); diff != "" || got.Effect != effect {
			t.Errorf("Decide(%s) = %s, want %s (-short +written):\n%s", tool, got.Effect, effect, diff)
		}
	}
}

func TestLoadAlone(t *testing.T) {
	files := map[string]string{"bad.yaml": "version: 1\npolicies: [{id: a, effect: deny, when: x}]\n"}
	for _, c := range []struct{ name, want string }{
		{"none.yaml", "none.yaml: cannot be read: file does not exist"},
		{"bad.yaml", "bad.yaml:2:40: policies[0].when: undeclared reference to 'x'"},
	} {
		got, err := LoadPolicy(c.name, openMap(files))
		if got != nil || err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("LoadPolicy(%s) = %v, %v, want %q", c.name, got, err, c.want)
		}
	}
	if got, err := LoadRisk("none.yaml", openMap(files)); got != nil || err == nil {
		t.Errorf("LoadRisk of a file that is not there = %v, %v, want an error", got, err)
	}
	if got, err := LoadRisk("bad.yaml", openMap(files)); got != nil || err == nil {
		t.Errorf("LoadRisk of policies = %v, %v, want an error", got, err)
	}
}
