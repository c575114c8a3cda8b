package risk_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
)

// The unusable values. null is unusable to every predicate; a number beyond all bounds, in the place of anything but
// null, to every expression too.
const (
	nothing = "null"
	beyond  = "1e999999"
)

func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// randomModel draws from a small world, so that much of it matches. It may look at arguments in expressions only if
// expressions is true; no expression falls as score rises.
func randomModel(r *rand.Rand, expressions bool) risk.Content {
	c := risk.Content{Modes: one(r, risk.DefaultModes(), []risk.Mode{{Name: "only", Baseline: 3}},
		[]risk.Mode{{Name: "a", Baseline: 0}, {Name: "b", Baseline: 0}, {Name: "c", Baseline: 40}, {Name: "d", Baseline: 80}, {Name: "e", Baseline: 500}})}
	mode := func() string { return one(r, c.Modes...).Name }
	c.Initial = mode()
	c.Vars = []risk.Var{{Name: "fix", Expr: "score + 7.0"}}
	exprs := []string{"5", "70", "score + 10.0", "score - 20.0", "math.greatest(score, 60.0)", "math.least(score * 2.0, 90.0)",
		"vars.fix", `env == "prod" ? score + 1.0 : 0.0`, "1 / 0 > 1 ? 1 : 2"}
	if expressions {
		c.Vars = append(c.Vars, risk.Var{Name: "b", Expr: "double(args.b) * 3.0"}, risk.Var{Name: "g", Expr: "has(args.a) ? args.a : 0"},
			risk.Var{Name: "bg", Expr: "vars.b + vars.g"})
		exprs = append(exprs, "args.a", "args.b", "100 / args.b", "vars.b", "vars.bg", "vars.g + score", "has(args.a) ? 90 : 3",
			"args.a == 5 ? 90 : 1", `args.b == "x" || args.c.d == 2 ? 700 : 30`, "size(args.c.e)", `"x" in args.c.e ? 4 : 100`,
			"type(args.a) == int ? 1 : 400", "args.c.e.exists(v, v == 5) ? 10 : 60", `size(args.c) == 1 ? 0 : 99`,
			"args.c.e.all(v, v != 5) ? 0 : 88", "args.b > 3 && args.a < 9 ? 2 : 55", "args == args ? 0 : 9", "args.c.e == [1] ? 200 : 0")
	}
	for i := range r.IntN(7) {
		rule := risk.Rule{ID: strconv.Itoa(i), Match: one(r, risk.Match{}, risk.Match{}, risk.Match{Env: "prod"}, risk.Match{Tool: "t*"}, risk.Match{Server: "x"})}
		for range r.IntN(3) {
			rule.Args = append(rule.Args, randomPredicate(r))
		}
		if r.IntN(2) == 0 {
			rule.SetMode = mode()
		}
		rule.Escalate = r.IntN(3) == 0
		if r.IntN(2) == 0 || rule.SetMode == "" && !rule.Escalate {
			rule.ScoreExpr = one(r, exprs...)
		}
		c.Rules = append(c.Rules, rule)
	}
	if r.IntN(2) == 0 { // most severe first, each from a lower score on
		at := 100 + r.IntN(800)
		for i := len(c.Modes) - 1; i >= 0 && at > 0; i-- {
			c.ModeByScore = append(c.ModeByScore, risk.Threshold{Mode: c.Modes[i].Name, When: fmt.Sprintf("score >= %d.0", at)})
			at -= 1 + r.IntN(200)
		}
	}
	return c
}

func randomPredicate(r *rand.Rand) risk.Predicate {
	p := risk.Predicate{Path: one(r, "a", "b", "/c/d", "/c/e", "/c/e/0", "/c/e/1", "c", "z"), Op: one(r, condition.Ops()...)}
	value := one(r, `5`, `"x"`, `true`, `0.5`, `"X"`, `1e300`)
	switch p.Op {
	case condition.OpGt, condition.OpGte, condition.OpLt, condition.OpLte:
		value = one(r, `5`, `0`, `9007199254740993`, `-1e300`)
	case condition.OpIn:
		value = one(r, `[5]`, `["x","y"]`, `[5,"x",true]`)
	case condition.OpMatches:
		value = one(r, `"x"`, `"^y?$"`)
	case condition.OpExists:
		value = one(r, `true`, `false`)
	}
	p.Value = jsontext.Value(value)
	return p
}

func randomScalar(r *rand.Rand) string {
	return one(r, `5`, `5.0`, `0`, `6`, `9007199254740993`, `1e400`, `"x"`, `"X"`, `"y"`, `""`, `true`, `false`, `null`, `0.0`, `-3`)
}

func randomArgs(r *rand.Rand) string {
	var members []string
	for _, name := range []string{"a", "b"} {
		if r.IntN(6) > 0 {
			members = append(members, fmt.Sprintf("%q:%s", name, randomScalar(r)))
		}
	}
	if r.IntN(6) > 0 {
		list := "[" + strings.Join([]string{randomScalar(r), randomScalar(r)}[:r.IntN(3)], ",") + "]"
		members = append(members, fmt.Sprintf(`"c":{"d":%s,"e":%s}`, randomScalar(r), one(r, list, list, list, randomScalar(r), `{}`)))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// lessKnown returns args with each of its values in turn replaced by hole.
func lessKnown(tb testing.TB, args, hole string) (out []string) {
	tb.Helper()
	dec := jsontext.NewDecoder(bytes.NewBufferString(args))
	for {
		if _, err := dec.ReadToken(); err != nil {
			return out
		}
		depth := dec.StackDepth()
		kind, n := dec.StackIndex(depth)
		if depth == 0 || dec.PeekKind() == '}' || dec.PeekKind() == ']' || kind == '{' && n%2 == 0 {
			continue // what comes is a name or an end
		}
		// Find the value behind the token just read without disturbing dec.
		rest := args[dec.InputOffset():]
		skipped := len(rest) - len(strings.TrimLeft(rest, ":, \t\r\n"))
		at := int(dec.InputOffset()) + skipped
		ahead := jsontext.NewDecoder(bytes.NewBufferString(args[at:]))
		value, err := ahead.ReadValue()
		if err != nil {
			continue // dec says so soon
		}
		if hole == beyond && value.Kind() == 'n' {
			continue
		}
		out = append(out, args[:at]+hole+args[at+len(value):])
	}
}

// falls finds a value of args that lowers mode or score when it is replaced by hole.
func falls(tb testing.TB, m *risk.Model, c risk.Content, args, hole string) (problem string, tried int) {
	tb.Helper()
	level := func(mode string) int {
		return slices.IndexFunc(c.Modes, func(m risk.Mode) bool { return m.Name == mode })
	}
	full := m.Judge(fresh(args))
	for _, less := range lessKnown(tb, args, hole) {
		tried++
		if got := m.Judge(fresh(less)); level(got.Mode) < level(full.Mode) || got.Score < full.Score {
			return fmt.Sprintf("%+v\n%s: %+v\n%s: %+v", c, args, full, less, got), tried
		}
	}
	return "", tried
}

func TestLessKnowledgeIsNeverLessRisk(t *testing.T) {
	models, calls := 60, 40
	if os.Getenv("PGFSM_SOAK") != "" {
		models = 3000
	}
	r := rand.New(rand.NewPCG(1, 2))
	tried, failed := 0, 0
	for range models {
		hole := one(r, nothing, beyond)
		c := randomModel(r, hole == beyond)
		m := compile(t, c)
		for range calls {
			args := randomArgs(r)
			problem, n := falls(t, m, c, args, hole)
			if problem != "" {
				t.Fatal(problem)
			}
			tried += n
			for _, done := range m.Judge(fresh(args)).Contributions {
				if done.Failed != "" {
					failed++
				}
			}
		}
	}
	if tried < models*calls || failed < models*calls/4 {
		t.Errorf("%d comparisons and %d contributions with failures in %d models, want more", tried, failed, models)
	}
}

// TestFallsFindsFalls shows that the property can fail: for the expression that the manual excludes, and for null in an
// expression, which may handle it.
func TestFallsFindsFalls(t *testing.T) {
	excluded := from("safe", content(risk.Rule{Args: arg("a", "eq", "1"), ScoreExpr: "600"}, risk.Rule{ScoreExpr: "1000.0 - score"}))
	if problem, _ := falls(t, compile(t, excluded), excluded, `{"a":2}`, beyond); problem == "" {
		t.Error("falls finds nothing in a model whose expression falls as score rises")
	}
	handled := from("safe", content(risk.Rule{ScoreExpr: "args.a == null ? 1 : 700"}))
	if problem, _ := falls(t, compile(t, handled), handled, `{"a":2}`, nothing); problem == "" {
		t.Error("falls finds nothing in a model that handles null")
	}
	if problem, _ := falls(t, compile(t, handled), handled, `{"a":2}`, beyond); problem != "" {
		t.Error(problem)
	}
}
