package lint_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/lint"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// rounds are few, unless the long tests are asked for (make soak).
func rounds(long int) int {
	if os.Getenv("PGFSM_SOAK") != "" {
		return long
	}
	return long / 50
}

// reach is what lint reports about the reachability of policies, by id.
type reach struct{ unreachable, unasked map[string]bool }

func reachOf(c *policy.Content) reach {
	r := reach{map[string]bool{}, map[string]bool{}}
	for _, f := range lint.Lint(c, nil) {
		switch f.Code {
		case lint.PolicyUnreachable:
			r.unreachable[f.Policy] = true
		case lint.ApprovalUnreachable:
			r.unasked[f.Policy] = true
		}
	}
	return r
}

// randomGlob makes patterns over few letters, so that they meet often. Some come in pieces that make up a whole.
func randomGlob(r *rand.Rand, longest int) string {
	if r.IntN(2) == 0 {
		return []string{"*", "*", "?*", "?", "??*", "a*", "*a"}[r.IntN(7)]
	}
	n := 1 + r.IntN(longest)
	b := make([]byte, n)
	for i := range b {
		b[i] = "**??ab"[r.IntN(6)]
	}
	return string(b)
}

// texts returns every text of at most n of the letters.
func texts(letters string, n int) []string {
	all, from := []string{""}, 0
	for range n {
		upTo := len(all)
		for _, t := range all[from:upTo] {
			for _, r := range letters {
				all = append(all, t+string(r))
			}
		}
		from = upTo
	}
	return all
}

// randomCondition puts tests together by every connective.
func randomCondition(r *rand.Rand, depth int) string {
	sub := func() string { return "(" + randomCondition(r, depth-1) + ")" }
	if depth > 0 {
		switch r.IntN(7) {
		case 0:
			return "!" + sub()
		case 1, 2:
			return sub() + " && " + sub()
		case 3, 4:
			return sub() + " || " + sub()
		case 5:
			return sub() + " ? " + sub() + " : " + sub()
		}
	}
	name := []string{"env", "tool", "server", "actor.id", "risk.mode"}[r.IntN(5)]
	text := []string{"", "a", "b", "ab", "z", "*"}[r.IntN(6)]
	tests := []string{
		fmt.Sprintf("%s == %q", name, text), fmt.Sprintf("%q != %s", text, name), fmt.Sprintf("%s in [%q, 'a']", name, text),
		fmt.Sprintf("%s.startsWith(%q)", name, text), fmt.Sprintf("%s.endsWith(%q)", name, text),
		fmt.Sprintf("%s.contains(%q)", name, text), fmt.Sprintf("%s.size() > 1", name), fmt.Sprintf("%s in []", name),
		"pinned", "tool_annotations.readOnlyHint", "true", "false", "1 / 0 == 1", "env == tool", "has(args.x)", "args.x == 1",
		"args.x == 1.0", "args.x == args.y", "'a' in args", "(-args.x).size() == -1", "-(args.x.size()) == -1",
		"args.xs.exists(x, x == 1)", "args.xs.all(x, x == 1)", "'a' in actor.roles",
		fmt.Sprintf("risk.score %s %d", []string{"<", "<=", ">", ">=", "==", "!="}[r.IntN(6)], r.IntN(3)*500),
		fmt.Sprintf("%d.5 < risk.score", r.IntN(3)),
	}
	return tests[r.IntN(len(tests))]
}

// roles are the configured ones of these tests.
var roles = []policy.Role{{Role: "a", Actors: []string{"a", "ab"}}}

func actorOf(id string) condition.Actor {
	a := condition.Actor{ID: id}
	if slices.Contains(roles[0].Actors, id) {
		a.Roles = []string{"a"}
	}
	return a
}

// TestFindingsHoldForRandomCalls decides random calls by random policies with conditions (a million in the long run): a
// policy that lint reports as unreachable decides none, in shadow or not, and one that it reports as never asking never asks.
func TestFindingsHoldForRandomCalls(t *testing.T) {
	conditions := []string{"", "", "true", "false", "1 / 0 == 1", "pinned", "!pinned", "pinned || !pinned", "env == 'a'",
		"env == 'a' && env == 'b'", "env == 'a' || env != 'a'", "args.x == 1", "args.x == 1 && pinned", "pinned && args.x == 1",
		"args.x == 1 && pinned && risk.score > 5", "risk.score > 5", "risk.score >= 0", "has(args.x)", "args.x == 1 || true",
		"args.y > 1 && args.x == 1"}
	for len(conditions) < 300 {
		conditions = append(conditions, randomCondition(rand.New(rand.NewPCG(5, uint64(len(conditions)))), 2))
	}
	r := rand.New(rand.NewPCG(3, 4))
	one := func(all []string) string { return all[r.IntN(len(all))] }
	names := append(texts("abz", 3), strings.Repeat("a", condition.MaxName)) // longer ones cannot be configured
	ids := []string{"", "a", "b", "ab", "*", "z", strings.Repeat("a", condition.MaxName+1)}
	model := risk.Content{Modes: []risk.Mode{{Name: "a"}, {Name: "b", Baseline: 500}, {Name: "ab", Baseline: 900}}, Initial: "a",
		ModeByScore: []risk.Threshold{{Mode: "ab", When: "score >= 999"}},
		Rules: []risk.Rule{{ID: "b", Match: risk.Match{Env: "?"}, SetMode: "b"}, {ID: "up", Match: risk.Match{Server: "?"}, Escalate: true},
			{ID: "score", ScoreExpr: "vars.n"}}, Vars: []risk.Var{{Name: "n", Expr: "double(args.s)"}}}
	assess, err := risk.Compile(model)
	if err != nil {
		t.Fatal(err)
	}
	inputs := []string{`{"x":"a","y":"a"}`, `{"x":[1],"xs":[1,2]}`, `{"xs":[]}`, `{"a":1}`, `{}`,
		`{"x":1}`, `{"x":2}`, `{"x":"1"}`, `{"x":1,"y":2}`, `{"x":1e400}`, `[]`,
		`{"s":1}`, `{"s":499,"x":1}`, `{"s":501}`, `{"s":998}`, `{"s":999,"x":2}`, `{"s":2000}`}
	decided, found := 0, 0
	for range rounds(5000) {
		policies := make([]rules.Policy, 1+r.IntN(6))
		for i := range policies {
			p := &policies[i]
			*p = rules.Policy{ID: fmt.Sprint(i), When: one(conditions), Effect: one([]string{rules.Allow, rules.Deny, rules.Pending}),
				Mode: one([]string{"", "", rules.Shadow}), Match: rules.Match{Server: randomGlob(r, 2), Tool: randomGlob(r, 2), Env: randomGlob(r, 2)}}
			if p.Effect == rules.Allow {
				p.Deny, p.RequireApprovalIf = one(conditions), one(conditions)
			}
		}
		set, err := rules.Compile(rules.Content{Policies: policies})
		if err != nil {
			t.Fatalf("Compile(%v) = %v", policies, err)
		}
		got := reachOf(&policy.Content{Policy: &rules.Content{Policies: policies}, Risk: &model, Roles: roles})
		found += len(got.unreachable) + len(got.unasked)
		check := func(id, effect, failed string) {
			if got.unreachable[id] {
				t.Fatalf("of %v policy %s decided, though it is unreachable", policies, id)
			}
			if got.unasked[id] && effect == rules.Pending {
				t.Fatalf("of %v policy %s asked, though it never does", policies, id)
			}
		}
		for range 250 {
			in := &condition.Input{Server: one(names), Tool: one(names), Env: one(names), Pinned: r.IntN(2) == 0,
				Args: []byte(one(inputs)), Actor: actorOf(one(ids))}
			readOnly := r.IntN(2) == 0
			in.Annotations.ReadOnly = &readOnly
			assessed := assess.Judge(condition.NewSubject(in))
			in.Risk = assessed.Risk()
			d := set.Decide(condition.NewSubject(in))
			if d.Policy != "" {
				decided++
			}
			check(d.Policy, d.Effect, d.Failed)
			for _, s := range d.Shadow {
				check(s.Policy, s.Effect, s.Failed)
			}
		}
	}
	t.Logf("%d findings, %d calls decided by a policy", found, decided)
	if found == 0 || decided == 0 {
		t.Error("nothing was compared")
	}
}

// TestConstantConditions: a condition that lint reports as never true, never false or always failing is so for random calls.
func TestConstantConditions(t *testing.T) {
	env, err := condition.PolicyEnv()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, 8))
	one := func(all []string) string { return all[r.IntN(len(all))] }
	names := append(texts("abz", 2), "*")
	model := &risk.Content{Modes: risk.DefaultModes(), Initial: "safe"}
	reported := 0
	for range rounds(2000) {
		src := randomCondition(r, 3)
		p, err := env.Bool(src)
		if err != nil {
			t.Fatal(err)
		}
		codes := map[string]bool{}
		for _, f := range lint.Lint(&policy.Content{Policy: &rules.Content{Policies: []rules.Policy{{ID: "p", When: src, Effect: rules.Deny}}}, Risk: model, Roles: roles}, nil) {
			codes[f.Code] = true
			reported++
		}
		for range 50 {
			mode := risk.DefaultModes()[r.IntN(3)]
			in := &condition.Input{Server: one(names), Tool: one(names), Env: one(names), Pinned: r.IntN(2) == 0,
				Actor: actorOf(one(names)), Args: []byte(one([]string{`{}`, `{"x":1,"xs":[1]}`, `{"x":"a"}`})),
				Risk: condition.Risk{Mode: mode.Name, Score: mode.Baseline + r.IntN(2)*(risk.MaxScore-mode.Baseline)}}
			yes, err := p.True(condition.NewSubject(in))
			if yes && (codes[lint.ConditionNeverTrue] || codes[lint.ConditionAlwaysFails]) ||
				!yes && err == nil && (codes[lint.ConditionAlwaysTrue] || codes[lint.ConditionAlwaysFails]) {
				t.Fatalf("%s = %t, %v for %+v, though lint reports %v", src, yes, err, in, codes)
			}
		}
	}
	if reported == 0 {
		t.Error("nothing was reported")
	}
}
