package lint_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/glob"
	"pgfsm/policy/lint"
	"pgfsm/policy/rules"
)

// gone returns the policies that lint says are never reached, and those that never ask.
func gone(policies []rules.Policy) (unreached, unasked map[string]bool) {
	unreached, unasked = map[string]bool{}, map[string]bool{}
	for _, f := range lint.Lint(&policy.Content{Policy: &rules.Content{Policies: policies}}, nil) {
		switch f.Code {
		case lint.PolicyUnreachable:
			unreached[f.Policy] = true
		case lint.ApprovalUnreachable:
			unasked[f.Policy] = true
		}
	}
	return unreached, unasked
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

// TestUnreachableEqualsBruteForce compares with all names over a small alphabet, long enough to tell short patterns
// apart, with one letter that no pattern names.
func TestUnreachableEqualsBruteForce(t *testing.T) {
	names := texts("abz", 6)
	matches := map[string][]bool{} // of each pattern, which of names it matches
	match := func(pattern string) []bool {
		if pattern == "" {
			pattern = "*"
		}
		if m, ok := matches[pattern]; ok {
			return m
		}
		g, err := glob.Compile(pattern)
		if err != nil {
			t.Fatal(err)
		}
		m := make([]bool, len(names))
		for i, n := range names {
			m[i] = g.Match(n)
		}
		matches[pattern] = m
		return m
	}
	r := rand.New(rand.NewPCG(1, 2))
	alone, together := 0, 0
	for range scaled(3000) {
		policies := make([]rules.Policy, 2+r.IntN(9))
		for i := range policies {
			policies[i] = rules.Policy{ID: fmt.Sprint(i), Effect: rules.Deny, Match: rules.Match{
				Server: randomGlob(r, 2), Tool: randomGlob(r, 3)}}
			if r.IntN(2) == 0 {
				policies[i].Match.Env = randomGlob(r, 2)
			}
		}
		unreached, _ := gone(policies)
		for i, p := range policies {
			reached := bruteForce(policies[:i], p, match)
			if reached == unreached[p.ID] {
				t.Fatalf("policy %d of %v: reached = %t by brute force, lint says unreachable = %t", i, policies, reached, unreached[p.ID])
			}
			if !reached {
				if single := slices.ContainsFunc(policies[:i], func(q rules.Policy) bool {
					return !bruteForce([]rules.Policy{q}, p, match)
				}); single {
					alone++
				} else {
					together++
				}
			}
		}
	}
	t.Logf("%d unreachable by one policy, %d by several together", alone, together)
	if alone == 0 || together == 0 {
		t.Error("not every kind of unreachable policy was met")
	}
}

// bruteForce reports whether p matches three names that none of those above match. Names that the same patterns match
// are tried once.
func bruteForce(above []rules.Policy, p rules.Policy, match func(string) []bool) bool {
	classes := func(of func(rules.Match) string) (out []uint) {
		own := match(of(p.Match))
		for n := range own {
			if !own[n] {
				continue
			}
			var class uint
			for i, q := range above {
				if match(of(q.Match))[n] {
					class |= 1 << i
				}
			}
			if !slices.Contains(out, class) {
				out = append(out, class)
			}
		}
		return out
	}
	envs := classes(func(m rules.Match) string { return m.Env })
	tools := classes(func(m rules.Match) string { return m.Tool })
	for _, s := range classes(func(m rules.Match) string { return m.Server }) {
		for _, tool := range tools {
			for _, e := range envs {
				if s&tool&e == 0 {
					return true
				}
			}
		}
	}
	return false
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

// TestUnreachableIsNeverContradicted decides a million random calls by random policies with conditions: what lint says
// is never reached decides none, in shadow or not, and who is said never to ask never does.
func TestUnreachableIsNeverContradicted(t *testing.T) {
	conditions := []string{"", "", "true", "false", "1 / 0 == 1", "pinned", "!pinned", "pinned || !pinned", "env == 'a'",
		"env == 'a' && env == 'b'", "env == 'a' || env != 'a'", "args.x == 1", "args.x == 1 && pinned", "pinned && args.x == 1",
		"args.x == 1 && pinned && risk.score > 5", "risk.score > 5", "risk.score >= 0", "has(args.x)", "args.x == 1 || true",
		"args.y > 1 && args.x == 1"}
	for len(conditions) < 300 {
		conditions = append(conditions, randomCondition(rand.New(rand.NewPCG(5, uint64(len(conditions)))), 3))
	}
	r := rand.New(rand.NewPCG(3, 4))
	one := func(all []string) string { return all[r.IntN(len(all))] }
	names := append(texts("abz", 3), strings.Repeat("a", condition.MaxName)) // longer ones cannot be configured
	modes := []string{"", "a", "b", "ab", "*", "z", strings.Repeat("a", condition.MaxName+1)}
	inputs := []string{`{"x":"a","y":"a"}`, `{"x":[1],"xs":[1,2]}`, `{"xs":[]}`, `{"a":1}`, `{}`,
		`{"x":1}`, `{"x":2}`, `{"x":"1"}`, `{"x":1,"y":2}`, `{"x":1e400}`, `[]`}
	decided, found := 0, 0
	for range scaled(1500) {
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
		unreached, unasked := gone(policies)
		found += len(unreached) + len(unasked)
		check := func(id, effect, failed string) {
			if unreached[id] {
				t.Fatalf("of %v policy %s decided, though it is unreachable", policies, id)
			}
			if unasked[id] && effect == rules.Pending {
				t.Fatalf("of %v policy %s asked, though it never does", policies, id)
			}
		}
		for range 700 { // with the sets above, a million calls and more
			in := &condition.Input{Server: one(names), Tool: one(names), Env: one(names), Pinned: r.IntN(2) == 0,
				Args: []byte(one(inputs)), Risk: condition.Risk{Score: []int{0, 1, 2, 499, 500, 501, 999, 1000, r.IntN(1001)}[r.IntN(9)], Mode: one(modes)},
				Actor: condition.Actor{ID: one(modes), Roles: []string{one(names)}}}
			readOnly := r.IntN(2) == 0
			in.Annotations.ReadOnly = &readOnly
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

// TestBoundsOfTheSearch: what is too large to be searched is not reported, except where one policy covers another.
func TestBoundsOfTheSearch(t *testing.T) {
	for _, tc := range []struct {
		n    int
		want bool
	}{{4, true}, {60, false}} {
		some := strings.Repeat("?", tc.n)
		unreached, _ := gone([]rules.Policy{
			{ID: "short", Effect: rules.Deny, Match: rules.Match{Tool: "a" + some}},
			{ID: "long", Effect: rules.Deny, Match: rules.Match{Tool: "?*a" + some}},
			{ID: "both", Effect: rules.Deny, Match: rules.Match{Tool: "*a" + some}},
			{ID: "one", Effect: rules.Deny, Match: rules.Match{Tool: "??*a" + some}},
		})
		if unreached["both"] != tc.want || !unreached["one"] {
			t.Errorf("with %d characters unreachable = %v, want both = %t, one = true", tc.n, unreached, tc.want)
		}
	}
}
