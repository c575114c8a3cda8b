package draft_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/draft"
	"pgfsm/policy/rules"
)

// TestPolicies drafts a policy for an argument from calls with these values.
func TestPolicies(t *testing.T) {
	repeat := func(n int, values ...string) (all []string) {
		for range n {
			all = append(all, values...)
		}
		return all
	}
	for _, tt := range []struct {
		name   string
		values []string // of the argument; empty: it is absent
		want   string
	}{
		{"few-texts", repeat(3, `"b"`, `"a"`), `!(args["x"] in ["a", "b"])`},
		{"too-few-calls-for-each", repeat(2, `"b"`, `"a"`), ``},
		{"absent-in-some", append(repeat(3, `"a"`), ""), `!(!("x" in args) || args["x"] in ["a"])`},
		{"prefix", []string{`"docs/a"`, `"docs/b"`, `"docs/c"`, `"docs/d"`, `"docs/"`}, `!(args["x"].startsWith("docs/"))`},
		{"prefix-ends-at-a-separator", []string{`"docs/ab"`, `"docs/abc"`, `"docs/abd"`, `"docs/abe"`, `"docs/abf"`}, `!(args["x"].startsWith("docs/"))`},
		{"domain", []string{`"a@example.com"`, `"b@example.com"`, `"c@example.com"`, `"d@example.com"`, `"e@example.com"`},
			`!(args["x"].endsWith("@example.com"))`},
		{"form", []string{`"1"`, `"22"`, `"303"`, `"4"`, `"5"`}, `!(args["x"].matches("^[0-9]+$"))`},
		{"no-form", []string{`"é"`, `"22"`, `"303"`, `"4"`, `"5"`}, ``},
		{"range", []string{`3`, `480`, `5`, `7`, `9`}, `!(args["x"] >= 2 && args["x"] <= 500)`},
		{"range-at-its-ends", []string{`1`, `500`, `5`, `7`, `9`}, `!(args["x"] >= 1 && args["x"] <= 500)`},
		{"range-below-zero", []string{`-3`, `0.4`, `0`, `-1`, `-2`}, `!(args["x"] >= -5 && args["x"] <= 0.5)`},
		{"large-numbers", repeat(5, `9007199254740993`), ``},
		{"bool", repeat(5, `true`), `!(args["x"] == true)`},
		{"both-bools", repeat(5, `true`, `false`), ``},
		{"list", repeat(3, `["a","b"]`, `[]`, `["a"]`), `!(args["x"].all(x, x in ["a", "b"]))`},
		{"mixed", repeat(5, `1`, `"a"`), ``},
		{"null", repeat(5, `null`), ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var calls []draft.Call
			for _, v := range tt.values {
				args := "{}"
				if v != "" {
					args = fmt.Sprintf(`{"x":%s}`, v)
				}
				calls = append(calls, draft.Call{Server: "s", Tool: "t", Args: []byte(args)})
			}
			got := ""
			drafted := draft.Policies([]policy.Allowance{{Server: "s"}}, calls)
			if len(drafted) > 1 {
				got = drafted[1].When
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Policies() (-want +got):\n%s", diff)
			}
			env, err := condition.PolicyEnv()
			check.NoError(t, err)
			for _, p := range drafted { // no call that was learned from is refused
				program, err := env.Bool(p.When)
				check.NoError(t, err)
				for _, c := range calls {
					in := &condition.Input{Server: c.Server, Tool: c.Tool, Args: c.Args}
					if denied, err := program.True(condition.NewSubject(in)); denied || err != nil {
						t.Errorf("%s = %t, %v for %s", p.When, denied, err, c.Args)
					}
				}
			}
		})
	}
}

// TestUnusedTools denies the tools that no call used.
func TestUnusedTools(t *testing.T) {
	drafted := draft.Policies([]policy.Allowance{{Server: "b", Tools: []string{"x", "y"}}, {Server: "a"}},
		[]draft.Call{{Server: "b", Tool: "x", Args: []byte(`{}`)}, {Server: "c", Tool: "z", Args: []byte(`{}`)}})
	var got []string
	for _, p := range drafted {
		got = append(got, p.ID+" "+p.Match.Server+" "+p.When)
	}
	if diff := cmp.Diff([]string{"draft-1 a ", `draft-2 b !(tool in ["x"])`}, got); diff != "" {
		t.Errorf("Policies() (-want +got):\n%s", diff)
	}
}

// TestHeldOutCalls drafts policies from calls of two weeks, and tries them on others of the same agents.
func TestHeldOutCalls(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 38))
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	var calls []draft.Call
	for range 2000 {
		c := draft.Call{Server: "s"}
		switch c.Tool = one("refund", "mail", "read"); c.Tool {
		case "refund":
			c.Args = fmt.Appendf(nil, `{"amount":%d.%02d,"currency":%q,"id":"R-%d"}`, 1+r.IntN(400), r.IntN(100), one("EUR", "USD"), r.IntN(1e6))
		case "mail":
			c.Args = fmt.Appendf(nil, `{"to":["%s%d@example.com"],"urgent":false}`, one("a", "b.c", "d"), r.IntN(100))
		default:
			c.Args = fmt.Appendf(nil, `{"path":"/srv/docs/%s/%d.txt"}`, one("x", "y"), r.IntN(1e4))
		}
		calls = append(calls, c)
	}
	env, err := condition.PolicyEnv()
	check.NoError(t, err)
	drafted := draft.Policies([]policy.Allowance{{Server: "s"}}, calls[:1600])
	refused := func(c draft.Call) bool {
		return slices.ContainsFunc(drafted, func(p rules.Policy) bool {
			program, err := env.Bool(p.When)
			check.NoError(t, err)
			denied, err := program.True(condition.NewSubject(&condition.Input{Server: c.Server, Tool: c.Tool, Args: c.Args}))
			return (p.Match.Tool == "" || p.Match.Tool == c.Tool) && (denied || err != nil)
		})
	}
	count := 0
	for _, c := range calls[1600:] {
		if refused(c) {
			count++
		}
	}
	t.Logf("%d of 400 calls are refused by %d policies", count, len(drafted))
	if count > 4 || len(drafted) != 7 {
		t.Errorf("%d of 400 calls are refused by %d policies, want at most 4 and 7 policies:\n%+v", count, len(drafted), drafted)
	}
	for _, unusual := range []draft.Call{
		{Server: "s", Tool: "refund", Args: []byte(`{"amount":5000,"currency":"EUR","id":"R-1"}`)},
		{Server: "s", Tool: "refund", Args: []byte(`{"amount":"5","currency":"EUR","id":"R-1"}`)},
		{Server: "s", Tool: "mail", Args: []byte(`{"to":["a1@example.com","eve@evil.com"],"urgent":false}`)},
		{Server: "s", Tool: "read", Args: []byte(`{"path":"/etc/passwd"}`)},
		{Server: "s", Tool: "delete", Args: []byte(`{}`)},
	} {
		if !refused(unusual) {
			t.Errorf("%s of %s is not refused", unusual.Args, unusual.Tool)
		}
	}
}
