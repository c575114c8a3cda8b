package condition_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy/condition"
)

const (
	canTrue  = condition.CanTrue
	canFalse = condition.CanFalse
	canFail  = condition.CanFail
	anything = canTrue | canFalse | canFail
)

// outcomes are what expressions can come to, for all calls.
var outcomes = []struct {
	name, src string
	want      condition.Outcomes
}{
	{"true", `true`, canTrue},
	{"false", `false`, canFalse},
	{"literals", `1 > 2 || 'a' == 'b'`, canFalse},
	{"fails", `1 / 0 == 1`, canFail},
	{"fails-before-what-is-open", `1 / 0 == 1 && 2 / 0 == 1`, canFail},
	{"short-circuit-over-a-failure", `args.x > 1 || true`, canTrue},
	{"short-circuit-to-false", `false && args.x`, canFalse},
	{"open", `args.x == 1`, anything},
	{"open-method", `tool.startsWith('a')`, anything},
	{"same-name-two-values", `env == 'a' && env == 'b'`, canFalse | canFail}, // a name may be too long
	{"every-value", `env == 'a' || env != 'a'`, canTrue | canFail},
	{"in-and-equal", `env in ['a', 'b'] && env == 'c'`, canFalse | canFail},
	{"in-and-not-equal", `env in ['a', 'b'] && env != 'a'`, anything},
	{"compared-with-a-name", `env == tool && env == 'a' && env == 'b'`, anything}, // not seen
	{"hint", `pinned || !pinned`, canTrue},
	{"two-hints", `pinned && !tool_annotations.readOnlyHint`, canTrue | canFalse},
	{"choice", `pinned ? env == 'a' : env == 'b'`, anything},
	{"score-beyond", `risk.score > 1000`, canFalse},
	{"score-below", `risk.score < 0 || 0 > risk.score`, canFalse},
	{"score-always", `risk.score >= 0`, canTrue},
	{"score-edge", `risk.score >= 1000`, canTrue | canFalse},
	{"score-gap", `risk.score > 49 && risk.score < 50`, canFalse},
	{"score-between", `risk.score > 48 && risk.score < 50`, canTrue | canFalse},
	{"score-as-double", `risk.score > 49.2 && risk.score < 49.8`, canFalse},
	{"score-calculated", `risk.score * 2 > 5000`, anything},
	{"mode", `risk.mode == 'a' && risk.mode != 'a'`, canFalse | canFail},
	{"role", `'a' in actor.roles && !('a' in actor.roles)`, anything},
	{"loop-over-a-list", `[1, 2].exists(x, x == 3)`, canFalse},
	{"loop-over-arguments", `args.xs.exists(x, x == 3)`, anything},
	{"many-loops", `[1].all(x, [1].all(y, [1].all(z, x == y)))`, anything},
	{"too-many-cases", `tool in ['` + strings.Join(strings.Split(strings.Repeat("a", 300), ""), "b','") + `'] && env == 'a' && env == 'b'`,
		canFalse | canFail},
	{"number", `1 + 1`, canTrue | canFalse},
	{"number-fails", `1 / 0`, canFail},
}

func TestOutcomes(t *testing.T) {
	for _, tc := range outcomes {
		t.Run(tc.name, func(t *testing.T) {
			if got := read(t, tc.src).Outcomes(nil); got != tc.want {
				t.Errorf("Outcomes(%s) = %03b, want %03b", tc.src, got, tc.want)
			}
		})
	}
}

func read(t testing.TB, src string) *condition.Reading {
	t.Helper()
	r, err := policyEnv(t).Read(src)
	if err != nil {
		t.Fatalf("Read(%q) = %v", src, err)
	}
	return r
}

// TestOutcomesOfACall: what is known of a call counts, the rest of it is open.
func TestOutcomesOfACall(t *testing.T) {
	in := call() // read-only, pinned, prod; nothing is said of being idempotent
	for _, tc := range []struct {
		src  string
		want condition.Outcomes
	}{
		{`tool_annotations.readOnlyHint`, canTrue},
		{`tool_annotations.idempotentHint`, canFalse},
		{`tool_annotations.openWorldHint`, canTrue},
		{`tool.startsWith('ref') && env == 'prod' && pinned`, canTrue},
		{`env == 'dev' || args.amount > 5`, anything},
		{`env == 'dev' && args.amount > 5`, canFalse},
		{`risk.score > 1000 || server != 'pay'`, canFalse},
		{`actor.id == 'ann'`, anything},
	} {
		if got := read(t, tc.src).Outcomes(in); got != tc.want {
			t.Errorf("Outcomes(%s) of a call = %03b, want %03b", tc.src, got, tc.want)
		}
	}
}

// TestOutcomesHold: what an expression comes to for a call is among the outcomes, for all calls and for that one.
func TestOutcomesHold(t *testing.T) {
	var calls []*condition.Input
	for _, env := range []string{"", "a", "b", "?", "prod", strings.Repeat("x", condition.MaxName+1)} {
		for _, score := range []int{0, 1, 48, 49, 50, 999, 1000} {
			for _, args := range []string{`{}`, `{"x":1,"xs":[3]}`, `{"x":"a","amount":10}`, `[]`, `{"x":1e400}`} {
				in := call()
				in.Env, in.Tool, in.Risk.Score, in.Args, in.Risk.Mode = env, env, score, []byte(args), env
				in.Pinned = score%2 == 0
				calls = append(calls, in)
			}
		}
	}
	sources := []string{`args.x == 1 && pinned || 1 / 0 == 1`, `env == 'a' ? 1 / 0 == 1 : pinned`, `env != 'a' && env != 'b'`}
	for _, tc := range outcomes {
		if !strings.HasPrefix(tc.name, "number") {
			sources = append(sources, tc.src)
		}
	}
	for _, src := range sources {
		p, r := mustBool(t, policyEnv(t), src), read(t, src)
		all := r.Outcomes(nil)
		for _, in := range calls {
			yes, err := p.True(condition.NewSubject(in).WithBudget(condition.MaxDecision/100, 0))
			got := canFalse
			if err != nil {
				got = canFail
			} else if yes {
				got = canTrue
			}
			if one := r.Outcomes(in); got&all == 0 || got&one == 0 {
				t.Fatalf("%s comes to %03b for %+v; Outcomes = %03b, of the call %03b", src, got, in, all, one)
			}
		}
	}
}

// keys returns the keys of the atoms of an expression.
func keys(r *condition.Reading) (all []string) {
	r.Formula().Atoms(func(a *condition.Atom) { all = append(all, a.Key) })
	return all
}

// TestKeys: two atoms have the same key if they are written differently, and other keys if they mean something else.
func TestKeys(t *testing.T) {
	got := keys(read(t, `pinned&&(env=='a'  ||  args.x>1) && has(args.x) && args.xs.exists(x, x == 1)`))
	var want []string
	for _, src := range []string{`pinned`, `env == "a"`, `args.x > 1`, `has(args.x)`, `args.xs.exists(x, x==1)`} {
		want = append(want, keys(read(t, src))...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the keys of one expression (-want +got)\n%s", diff)
	}
	different := []string{`args.x == 1`, `args.x == 1.0`, `args.x == 1u`, `args.x == '1'`, `args.x == b'1'`, `args.x`, `has(args.x)`,
		`(-args.x).size() == -1`, `-(args.x.size()) == -1`, `size(-args.x) == -1`, `args.x - (args.y - 1) == 0`,
		`args.x - args.y - 1 == 0`, `args["x"] == 1`, `args.x == [1]`, `args.x == [[1]]`, `args.x == {'a': 1}`, `args.x == {1: 'a'}`,
		`args.xs.exists(x, x == 1)`, `args.xs.all(x, x == 1)`, `args.xs.exists_one(x, x == 1)`, `args.x == 'a" "b'`, `args.x == null`,
		`!args.x.size() == true`, `!(args.x.size() == true)`, `(-args.x).y == 1`, `-(args.x.y) == 1`}
	seen := map[string]string{}
	for _, src := range different {
		r, err := policyEnv(t).Read(src)
		if err != nil {
			continue // it does not matter which of them are expressions here
		}
		key := fmt.Sprint(keys(r))
		if other := seen[key]; other != "" {
			t.Errorf("%s and %s have the same keys %s", src, other, key)
		}
		seen[key] = src
	}
	if len(seen) < 20 {
		t.Errorf("only %d expressions were compared", len(seen))
	}
}

func TestMentions(t *testing.T) {
	const src = "env == 'a' || 'b' != tool || server in ['c', args.x, 'd']\n || 'e' in actor.roles ||" +
		" risk.rules.all(r, r == 'f' || r in ['g']) || args.xs.exists(r, r == 'h') || [actor.id == 'i'] == [true]" +
		" || [risk.mode == 'j'] == [] || args.env == 'l' || (risk.mode + 'x' == 'm')"
	var got []string
	for _, m := range read(t, src).Mentions() {
		got = append(got, m.Name+" "+m.Text)
		line := strings.Split(src, "\n")[m.Line-1]
		if !strings.HasPrefix(line[m.Column-1:], "'"+m.Text+"'") {
			t.Errorf("%q is not at %d:%d", m.Text, m.Line, m.Column)
		}
	}
	want := []string{"env a", "tool b", "server c", "server d", "actor.roles e", "risk.rules f", "risk.rules g", "actor.id i", "risk.mode j"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Mentions() (-want +got)\n%s", diff)
	}
	if r := read(t, "args.env == 'x'"); r.Uses("env") || !r.Uses("args") {
		t.Error("Uses() takes an argument for the name")
	}
}

func TestReadRefuses(t *testing.T) {
	for _, src := range []string{``, `risk.scor > 1`, `args.x.matches(args.y)`, `x`, strings.Repeat("a", condition.MaxSource+1)} {
		if _, err := policyEnv(t).Read(src); err == nil {
			t.Errorf("Read(%.20q) = nil, want an error", src)
		}
	}
}
