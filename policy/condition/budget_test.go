package condition_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgfsm/policy/condition"
)

// TestBudget evaluates at the limit and one unit past it.
func TestBudget(t *testing.T) {
	e := policyEnv(t)
	p := mustBool(t, e, `args.list.exists(x, x == 'B')`)
	cheap := mustBool(t, e, `pinned`)
	s := condition.NewSubject(call())
	price := p.Price(s)
	if d, trial := s.Left(); d != condition.MaxDecision || trial != condition.MaxTrial {
		t.Fatalf("a new subject has %d and %d units", d, trial)
	}
	if yes, err := p.True(s.WithBudget(price, 0)); !yes || err != nil || s.Spent() {
		t.Errorf("True() with a budget of its price, %d, = %t, %v", price, yes, err)
	}
	if yes, err := p.True(s.WithBudget(price-1, math.MaxInt64)); yes || !errors.Is(err, condition.ErrSpent) || !s.Spent() {
		t.Errorf("True() with a budget of one less = %t, %v, want ErrSpent", yes, err)
	}
	if yes, err := cheap.True(s); yes || !errors.Is(err, condition.ErrSpent) {
		t.Errorf("True() of something cheap with a budget that is spent = %t, %v, want ErrSpent", yes, err)
	}
	s.OnTrial(true)
	if yes, err := p.True(s); !yes || err != nil || s.Spent() {
		t.Errorf("True() on trial, where nothing is spent, = %t, %v", yes, err)
	}
	s.OnTrial(false)
	if d, trial := s.Left(); d >= 0 || trial != condition.MaxTrial-price {
		t.Errorf("%d and %d units are left, want none and %d", d, trial, condition.MaxTrial-price)
	}
	for _, units := range []int64{-1, math.MinInt64, condition.MaxDecision + 1} {
		if s.WithBudget(math.MaxInt64, 0).Charge(units) || !s.Spent() {
			t.Errorf("Charge(%d) of the largest budget finds what it asks for", units)
		}
	}
	if !s.WithBudget(math.MaxInt64, 0).Charge(condition.MaxDecision) || s.Spent() || s.Charge(1) {
		t.Error("the largest budget is not MaxDecision")
	}
}

// TestPriceIsABound holds prices to CEL's own count of steps, for calls whose sizes differ, arguments beyond AnyInput too.
func TestPriceIsABound(t *testing.T) {
	e := policyEnv(t)
	long := strings.Repeat("a", condition.MaxName)
	many := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("role-%d", i))
		}
		return all
	}
	for _, src := range []string{
		`args.a.exists(x, x == 'nothing')`, `args.a.exists(x, x.contains(tool))`, `args.a.exists(x, x.contains(risk.mode))`,
		`args.t.matches('b+c')`, `args.t + args.t == 'b' || args.t.lowerAscii().contains(env)`, `args.a.exists(x, x == 1 || x == true)`,
		`actor.roles.exists(r, r.startsWith(tool))`, `'b' in actor.roles || 'b' in risk.rules`, `risk.rules.exists(r, r.matches('x+y'))`,
		`tool.matches('(a|b)+c') || actor.id.lowerAscii().contains('b')`, `env == 'dev' || args.a == ['x']`,
	} {
		p := mustBool(t, e, src)
		for _, n := range []int{1, 1000, 50_000} {
			for _, name := range []string{"", "short", long} {
				for _, texts := range []string{strings.Repeat(`"x",`, n), `"` + strings.Repeat("a", 4*n) + `",`, strings.Repeat("1,", 2*n)} {
					in := &condition.Input{Server: name, Tool: name, Env: name, Actor: condition.Actor{ID: name, Roles: many(n / 10)},
						Args: []byte(`{"a":[` + texts + `"x"],"t":"` + strings.Repeat("b", n) + `"}`),
						Risk: condition.Risk{Mode: name, Rules: many(n / 10)}}
					if len(in.Args) > condition.MaxArgs {
						continue
					}
					s := condition.NewSubject(in)
					counted, err := e.Counted(src, s)
					if err != nil {
						t.Fatalf("Counted(%s) = %v", src, err)
					}
					if price := p.Price(s); int64(counted) > price {
						t.Errorf("%s takes %d steps for %d bytes and names of %d, charged %d", src, counted, len(in.Args), len(name), price)
					}
				}
			}
		}
	}
}

// TestPriceFollowsSize: what an expression is charged is its bound for calls as large as the bound reckons with, and far
// less for small ones.
func TestPriceFollowsSize(t *testing.T) {
	e := policyEnv(t)
	for _, src := range []string{`args.a.exists(x, x.matches('a+b'))`, `'b' in actor.roles`, `tool.matches('(a|b)+c')`, `'r' in risk.rules`} {
		p := mustBool(t, e, src)
		most, err := e.Cost(src)
		if err != nil {
			t.Fatal(err)
		}
		name, list := strings.Repeat("a", condition.MaxName), []string{strings.Repeat("a", condition.AnyInput-2)}
		large := condition.NewSubject(&condition.Input{Tool: name, Actor: condition.Actor{Roles: list}, Args: make([]byte, condition.AnyInput),
			Risk: condition.Risk{Rules: list}})
		small := condition.NewSubject(&condition.Input{Tool: "a", Args: []byte(`{}`)})
		if got := float64(p.Price(large)); got < most || got > most*1.02+2 {
			t.Errorf("%s is charged %.0f for a large call, want its bound, %.0f", src, got, most)
		}
		if got := float64(p.Price(small)); got > most/20 {
			t.Errorf("%s is charged %.0f for a small call, want little of its bound, %.0f", src, got, most)
		}
		small.WithRisk(condition.Risk{Mode: name, Rules: list})
		if got := float64(p.Price(small)); strings.Contains(src, "risk.") && got < most {
			t.Errorf("%s is charged %.0f after a risk was set, want %.0f", src, got, most)
		}
	}
}

// TestSizesAreNotMultiplied: an expression that multiplies two sizes is beyond MaxCost, so that prices may grow in
// proportion.
func TestSizesAreNotMultiplied(t *testing.T) {
	e := policyEnv(t)
	for _, src := range []string{
		`actor.roles.exists(r, r in args.a)`, `args.a.exists(x, x in actor.roles)`, `actor.roles.exists(r, r in risk.rules)`,
		`risk.rules.exists(r, args.t.contains(r))`, `actor.roles.exists(r, actor.roles.exists(s, r.contains(s)))`,
		`args.a.exists(x, args.t.startsWith(args.u + args.u))`,
	} {
		if _, err := e.Bool(src); err == nil {
			cost, _ := e.Cost(src)
			t.Errorf("Bool(%s) is accepted, at a cost of %.0f", src, cost)
		}
	}
}

// TestBudgetHoldsTheLargestArguments: one condition with a loop or a pattern, and the dearest that is accepted, over
// arguments of a mebibyte.
func TestBudgetHoldsTheLargestArguments(t *testing.T) {
	e := policyEnv(t)
	in := &condition.Input{Args: []byte(`{"items":["` + strings.Repeat("x", condition.MaxArgs-24) + `"],"text":""}`)}
	if len(in.Args) != condition.MaxArgs {
		t.Fatalf("the arguments have %d bytes, want %d", len(in.Args), condition.MaxArgs)
	}
	for _, src := range []string{
		`args.items.exists(x, x.startsWith('/etc'))`, `args.items.all(x, x in ['a', 'b', 'c', 'd'])`,
		`args.items.exists(x, x.matches('(?i)\\b(password|secret|token|api[-_]?key)\\b'))`,
		`args.text.matches('(?i)\\b(password|secret|token|api[-_]?key)\\b')`,
		`args.items.exists(x, x.matches('[a-z]{1,74}y'))`, // a few more repetitions are refused
	} {
		p := mustBool(t, e, src)
		s := condition.NewSubject(in)
		if yes, err := p.True(s); yes || err != nil || s.Spent() {
			t.Errorf("True(%s) = %t, %v for %d bytes at a price of %d, want false", src, yes, err, len(in.Args), p.Price(s))
		}
	}
}

// TestBudgetHoldsWhatIsOrdinary: ten thousand conditions without loops and patterns, and a thousand with one over
// arguments as calls have them.
func TestBudgetHoldsWhatIsOrdinary(t *testing.T) {
	e := policyEnv(t)
	in := call()
	in.Args = []byte(`{"files":[` + strings.Repeat(`"src/main.go",`, 70) + `"go.mod"],"text":"` + strings.Repeat("word ", 200) + `"}`)
	huge := *in
	huge.Args = make([]byte, condition.MaxArgs)
	for _, tc := range []struct {
		times int64
		in    *condition.Input
		src   string
	}{
		{10_000, &huge, `has(args.amount) && args.amount > 1000 && env == 'prod' && !('lead' in actor.roles)`},
		{10_000, &huge, `tool.startsWith('delete_') || args.path.startsWith('/etc') || risk.score >= 50 && risk.mode == 'danger'`},
		{10_000, in, `tool.matches('^(get|list|search)_')`},
		{1000, in, `args.files.exists(f, f.startsWith('/etc'))`},
		{1000, in, `args.text.matches('(?i)password')`},
	} {
		if price := mustBool(t, e, tc.src).Price(condition.NewSubject(tc.in)); tc.times*price > condition.MaxDecision {
			t.Errorf("%d times %s cost %d units, more than %d", tc.times, tc.src, tc.times*price, condition.MaxDecision)
		}
	}
}
