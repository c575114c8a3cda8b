package prove_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/prove"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// usual is a configuration that keeps all of its claims.
func usual(c *policy.Content) {
	c.Roles = []policy.Role{{Role: "admin", Actors: []string{"bob"}}}
	c.Risk = &risk.Content{Modes: risk.DefaultModes(), Initial: "safe", Rules: []risk.Rule{
		{ID: "large", Match: risk.Match{Tool: "tool0"}, SetMode: "danger", Args: []risk.Predicate{{Path: "amount", Op: "gte", Value: []byte("1000")}}},
	}}
	c.Policy = &rules.Content{Policies: []rules.Policy{
		{ID: "no-system-paths", When: `has(args.path) && args.path.startsWith("/etc/")`, Effect: rules.Deny},
		{ID: "danger", When: `risk.mode == "danger"`, Effect: rules.Pending, Quorum: 2, Approvers: []string{"admin"}},
		{ID: "refunds", Match: rules.Match{Tool: "tool0"}, When: "args.amount >= 0", Effect: rules.Allow,
			RequireApprovalIf: "args.amount > 500", Quorum: 2},
		{ID: "admins", Match: rules.Match{Tool: "tool1"}, When: `"admin" in actor.roles`, Effect: rules.Allow},
	}}
}

var usualClaims = []prove.Claim{
	{ID: "paths", Kind: prove.Never, Effect: rules.Allow, When: `has(args.path) && args.path.startsWith("/etc/")`},
	{ID: "large", Kind: prove.Never, Effect: rules.Allow, When: "has(args.amount) && args.amount > 500"},
	{ID: "negative", Kind: prove.Never, Effect: rules.Allow, When: "has(args.amount) && args.amount < 0"},
	{ID: "two-people", Kind: prove.Always, Effect: rules.Pending, Quorum: 2, When: "has(args.amount) && args.amount >= 1000"},
	{ID: "strangers", Kind: prove.Never, Effect: rules.Allow, When: `tool == "tool1" && actor.id != "bob"`},
	{ID: "alive", Kind: prove.Reachable, Effect: rules.Allow, When: "args.amount == 500"},
}

// TestMutantsOfPolicies changes one thing of the policies and expects that the claims that it breaks are refuted.
func TestMutantsOfPolicies(t *testing.T) {
	schemas := []string{
		`{"type":"object","properties":{"amount":{"type":"integer","minimum":-10,"maximum":100000},"path":{"type":"string"}},"required":["amount"]}`,
		`{"type":"object","properties":{"path":{"type":"string"}}}`,
	}
	policyOf := func(c *policy.Content, id string) *rules.Policy {
		i := slices.IndexFunc(c.Policy.Policies, func(p rules.Policy) bool { return p.ID == id })
		return &c.Policy.Policies[i]
	}
	original := newFixture(t, usual, schemas...)
	unchanged := original.content.Policy
	for _, tt := range []struct {
		name   string
		change func(c *policy.Content)
		broken []string
	}{
		{"nothing", func(*policy.Content) {}, nil},
		{"deny-dropped", func(c *policy.Content) { c.Policy.Policies = c.Policy.Policies[1:] }, []string{"paths", "narrower", "same"}},
		{"deny-made-allow", func(c *policy.Content) { policyOf(c, "no-system-paths").Effect = rules.Allow },
			[]string{"paths", "large", "negative", "two-people", "strangers", "narrower", "same"}},
		{"hold-made-allow", func(c *policy.Content) {
			p := policyOf(c, "danger")
			p.Effect, p.Approvers, p.Quorum = rules.Allow, nil, 0
		}, []string{"large", "two-people", "narrower", "same"}},
		{"hold-dropped", func(c *policy.Content) { c.Policy.Policies = slices.Delete(c.Policy.Policies, 1, 2) },
			[]string{"narrower", "same"}}, // any approver may decide instead of an admin
		{"quorum-lowered", func(c *policy.Content) { policyOf(c, "danger").Quorum = 1 }, []string{"two-people", "narrower", "same"}},
		{"approvers-widened", func(c *policy.Content) { policyOf(c, "danger").Approvers = nil }, []string{"narrower", "same"}},
		{"approvers-changed", func(c *policy.Content) { policyOf(c, "danger").Approvers = []string{"owner"} }, []string{"narrower", "same"}},
		{"glob-widened", func(c *policy.Content) { policyOf(c, "admins").Match.Tool = "*" }, []string{"negative", "narrower", "same"}},
		{"glob-narrowed", func(c *policy.Content) { policyOf(c, "refunds").Match.Tool = "tool" }, []string{"alive", "same"}},
		{"bound-shifted-up", func(c *policy.Content) { policyOf(c, "refunds").RequireApprovalIf = "args.amount > 501" },
			[]string{"large", "narrower", "same"}},
		{"bound-shifted-down", func(c *policy.Content) { policyOf(c, "refunds").RequireApprovalIf = "args.amount > 499" },
			[]string{"alive", "same"}},
		{"lower-bound-shifted", func(c *policy.Content) { policyOf(c, "refunds").When = "args.amount >= -1" },
			[]string{"negative", "narrower", "same"}},
		{"prefix-shortened", func(c *policy.Content) {
			policyOf(c, "no-system-paths").When = `has(args.path) && args.path == "/etc/"`
		}, []string{"paths", "narrower", "same"}},
		{"prefix-that-denies-more", func(c *policy.Content) {
			policyOf(c, "no-system-paths").When = `has(args.path) && args.path.startsWith("/etc")`
		}, []string{"same"}},
		{"policies-swapped", func(c *policy.Content) {
			p := c.Policy.Policies
			p[0], p[2] = p[2], p[0]
		}, []string{"paths", "narrower", "same"}},
		{"negated", func(c *policy.Content) { policyOf(c, "admins").When = `!("admin" in actor.roles)` },
			[]string{"strangers", "narrower", "same"}},
		{"rule-shifted", func(c *policy.Content) { c.Risk.Rules[0].Args[0].Value = []byte("1001") }, []string{"narrower", "same"}},
		{"rule-dropped", func(c *policy.Content) { c.Risk.Rules = nil }, []string{"narrower", "same"}},
		{"role-widened", func(c *policy.Content) { c.Roles[0].Actors = []string{"bob", "eve"} }, []string{"strangers"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, func(c *policy.Content) { usual(c); tt.change(c) }, schemas...)
			older := f.content
			older.Policy, older.Risk = unchanged, original.content.Risk
			old, err := policy.Compile(older)
			check.NoError(t, err)
			claims := append(slices.Clone(usualClaims), prove.Claim{ID: "narrower", Kind: prove.Implies, Old: old},
				prove.Claim{ID: "same", Kind: prove.Equivalent, Old: old})
			var broken []string
			for i, r := range f.prove(t, claims...) {
				switch r.Status {
				case prove.Refuted:
					broken = append(broken, r.ID)
				case prove.Unknown:
					t.Errorf("the claim %s is unknown: %s %s %s", r.ID, r.Reason, r.Where, r.Condition)
				}
				if r.Call != nil {
					checkCall(t, f, &claims[i], &r)
				}
			}
			if diff := cmp.Diff(tt.broken, broken); diff != "" {
				t.Errorf("refuted claims (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMutantsOfTheProver breaks the prover itself and expects that the tests of this package notice. Each mutant is
// compiled in place of a file, so it runs only with the long tests.
func TestMutantsOfTheProver(t *testing.T) {
	if !isSoak() {
		t.Skip("it compiles the package for each mutant; make soak runs it")
	}
	for _, tt := range []struct{ name, file, is, becomes string }{
		{"a-cell-dropped", "places.go", "	slices.SortStableFunc(d.cells,", "	d.cells = d.cells[:max(1, len(d.cells)-1)]\n	slices.SortStableFunc(d.cells,"},
		{"failure-taken-for-false", "atom.go", "		return canFail\n	}\n	return boolOutcome(yes)", "		return canFalse\n	}\n	return boolOutcome(yes)"},
		{"one-tool-for-all", "places.go", "key += fmt.Sprintf(\" %p\", p.tool)", "key += \"\""},
		{"order-reversed", "side.go", "entries = append(entries, e)", "entries = append([]*entry{e}, entries...)"},
		{"strict-when-forgotten", "side.go", "e.strict = p.Effect != rules.Allow ||", "e.strict = false &&"},
		{"absent-forgotten", "places.go", "if !possible || !t.root.requires(name) {", "if !possible {"},
		{"doubles-forgotten", "numbers.go", "add(doubleLiteral(near))", "_ = near"},
		{"unusable-numbers-forgotten", "numbers.go", "if !ok || seen[literal]", "if !ok || ratOf(literal) == nil || seen[literal]"},
		{"null-forgotten", "cells.go", "if s.hasKind(null) {", "if false {"},
		{"empty-list-forgotten", "cells.go", "sets, known := []subset{{}}, map[vector]bool{\"\": true}", "sets, known := []subset{}, map[vector]bool{}\n	for i := range elements {\n		sets = append(sets, subset{seen[i], []int{i}})\n	}"},
		{"one-element-only", "cells.go", "joined := sets[next].seen.join(seen[i])", "if next > 0 {\n				continue\n			}\n			joined := sets[next].seen.join(seen[i])"},
		{"uncertain-rules-lower", "../risk/assess.go", "s.level = max(s.level, levelBefore)", "_ = levelBefore"},
		{"origins-forgotten", "atom.go", "addTo(&a.reads, placeOrigins)", "_ = placeOrigins"},
		{"free-atoms-are-true", "problem.go", "p.free[a] = a.free", "p.free[a], p.outcomes[a] = a.free, canTrue"},
		{"last-class-forgotten", "automaton.go", "for class, char := range classes {", "for class, char := range classes[:max(1, len(classes)-1)] {"},
		{"literals-forgotten", "cells.go", "addTo(&texts, literal)", "_ = literal"},
		{"unknown-groups-forgotten", "caller.go", "add(nil) // unknown groups", "if p.form != subject {\n		add(nil)\n	}"},
		{"people-forgotten", "caller.go", "staticAgent, staticPerson, subject}", "staticAgent, subject}"},
		{"names-forgotten", "cells.go", "return d.addKeys(t, names, objects, wrap)", "return d.fillObjects(t, objects)"},
		{"holds-compare-equal", "claim.go", "return slices.Contains(changes, ruling.HoldWeakened) ||", "return false &&"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, err := os.ReadFile(tt.file)
			check.NoError(t, err)
			if strings.Count(string(text), tt.is) != 1 {
				t.Fatalf("%s has %q %d times, want 1", tt.file, tt.is, strings.Count(string(text), tt.is))
			}
			mutant := filepath.Join(t.TempDir(), "mutant.go")
			check.NoError(t, os.WriteFile(mutant, []byte(strings.Replace(string(text), tt.is, tt.becomes, 1)), 0o600))
			original, err := filepath.Abs(tt.file)
			check.NoError(t, err)
			overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: mutant}})
			check.NoError(t, err)
			list := filepath.Join(t.TempDir(), "overlay.json")
			check.NoError(t, os.WriteFile(list, overlay, 0o600))
			cmd := exec.Command("go", "test", "-overlay", list, "-count=1", "-run", "TestProofsHold|TestEdges|TestMutantsOfPolicies|TestDivide|TestTooMany", ".")
			cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PGFSM_SOAK=") })
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL") {
				t.Errorf("no test noticed the mutant: %v\n%s", err, out)
			}
		})
	}
}
