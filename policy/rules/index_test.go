package rules

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"pgfsm/policy/condition"
)

// looked is how many policies the index leaves to be looked at.
func looked(s *Set, in condition.Input) (n int) {
	found := make([]uint64, s.index.words)
	s.index.find(found, in.Server, in.Tool, in.Env)
	for _, word := range found {
		n += bits.OnesCount64(word)
	}
	return n
}

// agree compares Decide with Explain, which uses no index, over plain policies of alternating effects.
func agree(s *Set, in condition.Input) error {
	got := s.Decide(fresh(in))
	if want, _ := s.Explain(fresh(in)); !equal(got, want) {
		return fmt.Errorf("Decide(%q, %q, %q) = %+v, without an index %+v", in.Server, in.Tool, in.Env, got, want)
	}
	return nil
}

// everyMatch makes each match a shadow, so that every policy that fits is in the decision.
func everyMatch(matches []Match) []Policy {
	policies := make([]Policy, len(matches))
	for i, m := range matches {
		policies[i] = Policy{ID: fmt.Sprint("p", i), Match: m, Effect: Deny, Mode: Shadow}
	}
	return policies
}

// every returns all texts over an alphabet up to a length, the empty one included.
func every(alphabet string, most int) []string {
	all := []string{""}
	for from, n := 0, 0; n < most; n++ {
		to := len(all)
		for _, text := range all[from:to] {
			for _, c := range alphabet {
				all = append(all, text+string(c))
			}
		}
		from = to
	}
	return all
}

func TestIndex_EqualsALoopOverSmallAlphabets(t *testing.T) {
	var matches []Match
	for _, pattern := range every("ab*?", 4)[1:] {
		matches = append(matches, Match{Server: pattern}, Match{Tool: pattern}, Match{Env: pattern, Server: "a*"})
	}
	texts := every("ab", 5)
	r := rand.New(rand.NewPCG(1, 1))
	for from := 0; from < len(matches); from += MaxShadow {
		s := mustCompile(t, everyMatch(matches[from:min(from+MaxShadow, len(matches))])...)
		for _, text := range texts {
			for _, in := range []condition.Input{{Server: text, Tool: "b", Env: "a"}, {Server: "ab", Tool: text}, {Server: "a",
				Env: text},
				{Server: text, Tool: pick(r, texts), Env: pick(r, texts)}} {
				if err := agree(s, in); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestIndex_EqualsALoopOverRandomSets(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	pieces := []string{"a", "b", "ab", "*", "?", "aab", "é", "billing-", "svc", strings.Repeat("long", 15)}
	text := func(wild bool) string {
		var b strings.Builder
		for range 1 + r.IntN(4) {
			if p := pick(r, pieces); wild || p != "*" && p != "?" {
				b.WriteString(p)
			}
		}
		return b.String()
	}
	fits := 0
	for range 150 {
		matches := make([]Match, 1+r.IntN(200))
		for i := range matches {
			matches[i] = Match{text(true), text(true), text(true)}
			for _, one := range []*string{&matches[i].Server, &matches[i].Tool, &matches[i].Env} {
				if r.IntN(3) == 0 {
					*one = ""
				}
			}
		}
		s := mustCompile(t, everyMatch(matches)...)
		for range 40 {
			in := condition.Input{Server: text(false), Tool: text(false), Env: text(false)}
			if err := agree(s, in); err != nil {
				t.Fatalf("%v\n%+v", err, matches)
			}
			fits += len(s.Decide(fresh(in)).Shadow)
		}
	}
	if fits < 1000 {
		t.Errorf("only %d policies fitted: this shows little", fits)
	}
}

// The comparison notices an index that loses policies, in each of its parts.
func TestIndex_CanFail(t *testing.T) {
	policies := everyMatch([]Match{{Server: "a*"}, {Tool: "?"}, {Server: "*ab*"}, {Tool: "b"}})
	in := condition.Input{Server: "ab", Tool: "b"}
	for name, lose := range map[string]func(*index){
		"nothing":      func(*index) {},
		"always":       func(x *index) { clear(x.always) },
		"lists":        func(x *index) { clear(x.lists) },
		"suffixes":     func(x *index) { each(x, func(n *node) { n.back, n.next = 0, 0 }) },
		"keys-in-keys": func(x *index) { each(x, func(n *node) { n.list = -1 }) },
		"edges":        func(x *index) { each(x, func(n *node) { n.count = 0 }) },
	} {
		s := mustCompile(t, policies...)
		lose(&s.index)
		if err := agree(s, in); (err == nil) != (name == "nothing") {
			t.Errorf("an index without %s: %v", name, err)
		}
	}
}

func each(x *index, change func(*node)) {
	for i := range x.nodes {
		change(&x.nodes[i])
	}
}

// Policies whose globs cannot match are not looked at, however many there are.
func TestIndex_LeavesOut(t *testing.T) {
	for _, tc := range []struct {
		name  string
		match func(i int) Match
		in    condition.Input
		most  int
	}{
		{"servers", func(i int) Match { return Match{Server: fmt.Sprintf("server-%d-*", i)} },
			condition.Input{Server: "server-77-x"}, 1},
		{"tools-of-any-server", func(i int) Match { return Match{Tool: fmt.Sprintf("get_%d", i)} },
			condition.Input{Server: "s", Tool: "get_7"}, 1},
		{"ends-of-tools", func(i int) Match { return Match{Tool: fmt.Sprintf("*_%d", i)} }, condition.Input{Tool: "get_7"},
			1},
		{"middles-of-tools", func(i int) Match { return Match{Tool: fmt.Sprintf("*_%d_*", i)} },
			condition.Input{Tool: "get_7_x"}, 1},
		{"environments", func(i int) Match { return Match{"*", "*", fmt.Sprintf("e%04d?", i)} },
			condition.Input{Env: "e0007x"}, 1},
		{"hundred-servers-with-hundred-tools", func(i int) Match {
			return Match{Server: fmt.Sprint("s", i/100),
				Tool: fmt.Sprint("t", i%100)}
		},
			condition.Input{Server: "s7", Tool: "t33"}, 1},
		{"one-server-prefix-many-tool-prefixes", func(i int) Match {
			return Match{Server: "prod-*",
				Tool: fmt.Sprintf("x%d_*", i)}
		},
			condition.Input{Server: "prod-1", Tool: "x42_a"}, 1},
		{"long-names-that-differ-at-the-end", func(i int) Match {
			return Match{Server: strings.Repeat("s",
				100) + fmt.Sprint(i)}
		},
			condition.Input{Server: strings.Repeat("s", 100) + "42"}, 1},
		{"prefixes-of-each-other", func(i int) Match { return Match{Server: strings.Repeat("a", i%200+1) + "*"} },
			condition.Input{Server: "aaa"}, 3 * MaxPolicies / 200},
		{"no-letter-anywhere", func(int) Match { return Match{Server: "?*"} }, condition.Input{Server: "a"}, MaxPolicies},
	} {
		t.Run(tc.name, func(t *testing.T) {
			policies := make([]Policy, MaxPolicies)
			for i := range policies {
				policies[i] = Policy{ID: fmt.Sprint(i), Match: tc.match(i), Effect: Deny}
			}
			s := mustCompile(t, policies...)
			if n := looked(s, tc.in); n < 1 || n > tc.most {
				t.Errorf("%d of %d policies are looked at, want 1 to %d", n, MaxPolicies, tc.most)
			}
			if d := s.Decide(fresh(tc.in)); d.Policy == "" {
				t.Errorf("Decide() = %+v, want the one policy that fits", d)
			}
		})
	}
}

// A letter or two occur in most names: they make no key where there is anything better, however few policies share
// them.
func TestIndex_ShortPiecesAreTheLastChoice(t *testing.T) {
	for _, tc := range []struct {
		name     string
		policies []Policy
		want     []string
	}{
		{"shared-and-long-before-own-and-short",
			[]Policy{{Match: Match{"pay-*", "*a*", ""}}, {Match: Match{"pay-*", "*b*",
				""}}},
			[]string{"\xffpay-", "\xffpay-"}},
		{"own-before-shared", []Policy{{Match: Match{"billing-*", "*abc*", ""}}, {Match: Match{"billing-*", "*xyz*", ""}}},
			[]string{"abc", "xyz"}},
		{"the-longer-of-two-that-as-many-share", []Policy{{Match: Match{"*abc*", "*abcd*", ""}}}, []string{"abcd"}},
		{"nothing-else", []Policy{{Match: Match{"*a*", "?", ""}}}, []string{"a"}},
		{"across-names", []Policy{{Match: Match{"s", "t", "e*"}}}, []string{"\xffs\xfft\xffe"}},
		{"nothing-at-all", []Policy{{Match: Match{"?", "", "*"}}}, []string{""}},
	} {
		if got := chooseKeys(tc.policies); !slices.Equal(got, tc.want) {
			t.Errorf("%s: chooseKeys() = %q, want %q", tc.name, got, tc.want)
		}
	}
}

// policiesOf reads a fuzz input: one policy a line, its three globs between spaces.
func policiesOf(text string) []Policy {
	var policies []Policy
	for line := range strings.SplitSeq(text, "\n") {
		globs := append(strings.Split(line, " "), "", "", "")
		p := Policy{ID: fmt.Sprint("p", len(policies)), Match: Match{globs[0], globs[1], globs[2]}, Effect: Deny,
			Mode: Shadow}
		if _, err := Compile(Content{Policies: []Policy{p}}); err == nil && len(policies) < 300 {
			policies = append(policies, p)
		}
	}
	return policies
}

func FuzzIndex(f *testing.F) {
	f.Fuzz(func(t *testing.T, text, server, tool, env string) {
		s, err := Compile(Content{Policies: policiesOf(text)})
		if err != nil {
			t.Fatalf("policies that compile one by one do not together: %v", err)
		}
		if err := agree(s, condition.Input{Server: server, Tool: tool, Env: env}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestFuzzIndex_HasSeeds(t *testing.T) {
	seeds, err := os.ReadDir("testdata/fuzz/FuzzIndex")
	if err != nil || len(seeds) < 6 {
		t.Errorf("testdata/fuzz/FuzzIndex holds %d seeds, %v", len(seeds), err)
	}
}
