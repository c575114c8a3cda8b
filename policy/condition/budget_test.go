package condition_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgfsm/policy/condition"
)

// cost returns what an evaluation costs, with the whole budget of a decision.
func cost(t testing.TB, p *condition.Program, in *condition.Input) int64 {
	t.Helper()
	s := condition.NewSubject(in)
	p.True(s)
	spent, _ := s.Cost()
	if s.Spent() {
		t.Fatalf("%s spends the budget of a decision", p.Source())
	}
	return int64(spent)
}

func TestBudgetAtItsLimit(t *testing.T) {
	e := policyEnv(t)
	p, cheap := mustBool(t, e, `args.list.exists(x, x == 'B')`), mustBool(t, e, `pinned`)
	price := cost(t, p, call())
	s := condition.NewSubject(call())
	if yes, err := p.True(s.WithBudget(price, 0)); !yes || err != nil || s.Spent() {
		t.Errorf("True() with a budget of its cost, %d, = %t, %v", price, yes, err)
	}
	if yes, err := p.True(s.WithBudget(price-1, math.MaxInt64)); yes || !errors.Is(err, condition.ErrSpent) || !s.Spent() {
		t.Errorf("True() with one unit less = %t, %v, want ErrSpent", yes, err)
	}
	if yes, err := cheap.True(s); yes || !errors.Is(err, condition.ErrSpent) {
		t.Errorf("True() of a cheap condition with a spent budget = %t, %v, want ErrSpent", yes, err)
	}
	s.OnTrial(true)
	if yes, err := p.True(s); !yes || err != nil || s.Spent() {
		t.Errorf("True() on trial, where nothing is spent, = %t, %v", yes, err)
	}
	s.OnTrial(false)
	if decision, trial := s.Cost(); !s.Spent() || decision < uint64(price) || trial != uint64(price) {
		t.Errorf("%d and %d units are spent, want at least %d and %d", decision, trial, price, price)
	}
}

func TestBudgetIsOneForAllConditions(t *testing.T) {
	e := policyEnv(t)
	p, in := mustBool(t, e, `args.list.exists(x, x == 'B')`), call()
	price := cost(t, p, in)
	s := condition.NewSubject(in).WithBudget(3*price-1, 0)
	for i := range 3 {
		if _, err := p.True(s); (err != nil) != (i == 2) {
			t.Errorf("evaluation %d with a budget for less than three = %v", i, err)
		}
	}
}

// TestBudgetHoldsTheLargestArguments evaluates one condition with a loop or a pattern over arguments of a mebibyte.
func TestBudgetHoldsTheLargestArguments(t *testing.T) {
	e := policyEnv(t)
	one := []byte(`{"items":["` + strings.Repeat("x", condition.MaxArgs-24) + `"],"text":""}`)
	text := []byte(`{"items":[],"text":"` + strings.Repeat("x", condition.MaxArgs-22) + `"}`)
	many := []byte(`{"items":[` + strings.Repeat(`"x",`, condition.MaxArgs/4-8) + `"x"],"text":""}`)
	for _, src := range []string{
		`args.items.exists(x, x.startsWith('/etc'))`, `args.items.all(x, x in ['a', 'b', 'c', 'x'])`,
		`args.items.exists(x, x.matches('(?i)\\b(password|secret|token)\\b'))`,
		`args.text.matches('(?i)\\b(password|secret|token)\\b')`,
		`args.items.filter(x, x.lowerAscii() == 'y').size() > 0`,
	} {
		p := mustBool(t, e, src)
		for _, args := range [][]byte{one, text, many} {
			if n := len(args); n > condition.MaxArgs || n < condition.MaxArgs-64 {
				t.Fatalf("the arguments have %d bytes, want %d", n, condition.MaxArgs)
			}
			s := condition.NewSubject(&condition.Input{Args: args})
			if _, err := p.True(s); err != nil {
				t.Errorf("True(%s) = %v for %.20s…", src, err, args)
			}
		}
	}
}

// TestBudgetHoldsManyConditions counts ten thousand comparisons, and a thousand loops and patterns over common arguments.
func TestBudgetHoldsManyConditions(t *testing.T) {
	e := policyEnv(t)
	in := call()
	in.Args = []byte(`{"files":[` + strings.Repeat(`"src/main.go",`, 70) + `"go.mod"],"path":"/srv","text":"` + strings.Repeat("word ", 200) + `"}`)
	for _, tc := range []struct {
		times int64
		src   string
	}{
		{10_000, `has(args.amount) && args.amount > 1000 && env == 'prod' && !('lead' in actor.roles)`},
		{10_000, `tool.startsWith('delete_') || args.path.startsWith('/etc') || risk.score >= 50 && risk.mode == 'danger'`},
		{10_000, `tool.matches('^(get|list|search)_')`},
		{1000, `args.files.exists(f, f.startsWith('/etc'))`},
		{1000, `args.text.matches('(?i)password')`},
	} {
		if price := cost(t, mustBool(t, e, tc.src), in); tc.times*price > condition.MaxDecision {
			t.Errorf("%d times %s cost %d units, more than %d", tc.times, tc.src, tc.times*price, condition.MaxDecision)
		}
	}
}
