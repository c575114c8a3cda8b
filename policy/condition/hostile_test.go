package condition_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pgfsm/policy/condition"
)

// repeated returns s n times with sep between.
func repeated(s, sep string, n int) string { return strings.Repeat(s+sep, n-1) + s }

// TestLimits reads expressions at each limit and one past it.
func TestLimits(t *testing.T) {
	e := policyEnv(t)
	pad := func(n int) string { return `env == 'x'` + strings.Repeat(" ", n-len(`env == 'x'`)) }
	pattern := func(n int) string { return `env.matches('` + strings.Repeat("a", n) + `')` }
	for _, tc := range []struct{ name, fits, refused, says string }{
		{"source", pad(condition.MaxSource), pad(condition.MaxSource + 1), "4097 bytes, more than 4096"},
		{"source-in-bytes", `'é' == '` + strings.Repeat("é", 2043) + `'`, `'é' == '` + strings.Repeat("é", 2044) + `'`, "more than 4096"},
		{"depth-of-parentheses", strings.Repeat("(", 49) + "pinned" + strings.Repeat(")", 49),
			strings.Repeat("(", 50) + "pinned" + strings.Repeat(")", 50), "recursion"},
		{"depth-of-sums", repeated("1", "+", 50) + " > 1", repeated("1", "+", 51) + " > 1", "recursion"},
		{"depth-of-choices", strings.Repeat("pinned ? pinned : ", 49) + "pinned", strings.Repeat("pinned ? pinned : ", 50) + "pinned", "recursion"},
		{"depth-of-members", "args" + strings.Repeat(".a", 49) + " == 1", "args" + strings.Repeat(".a", 50) + " == 1", "recursion"},
		{"depth-of-lists", strings.Repeat("[", 50) + strings.Repeat("]", 50) + " == []",
			strings.Repeat("[", 51) + strings.Repeat("]", 51) + " == []", "recursion"},
		{"pattern", pattern(condition.MaxPattern), pattern(condition.MaxPattern + 1), "1025 bytes, more than 1024"},
		{"pattern-compiled", `env.matches('a{900}b{900}')`, `env.matches('a{1000}b{1000}c{100}')`, "instructions, more than 2048"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := e.Bool(tc.fits); err != nil {
				t.Errorf("Bool() at the limit = %v", err)
			}
			_, err := e.Bool(tc.refused)
			var at *condition.Error
			if !errors.As(err, &at) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Bool() one past = %v, want an *Error with %q", err, tc.says)
			}
		})
	}
	if _, err := e.Bool(repeated("pinned", "||", 500)); err != nil {
		t.Errorf("a long || is not deep: %v", err)
	}
}

// TestHostile evaluates what would take too long, or too much memory, over arguments of up to a mebibyte: the budget ends
// it, here a tenth of a decision's so that the test takes little time. What one call would take is charged before the call.
func TestHostile(t *testing.T) {
	e := policyEnv(t)
	n := condition.MaxArgs
	texts := `{"a":[` + strings.Repeat(`"x",`, n/8-8) + `"x"],"b":[` + strings.Repeat(`"y",`, n/8-8) + `"y"]}`
	text := `{"t":"` + strings.Repeat("a", n/2-8) + `","u":"` + strings.Repeat("a", n/4) + `b"}`
	parts := `{"a":[{"t":[` + strings.Repeat(`"x",`, n/4-16) + `"x"]}]}`
	for _, tc := range []struct{ name, args, src string }{
		{"loop-in-loop", texts, `args.a.exists(x, args.b.exists(y, x == y))`},
		{"loop-in-loop-over-one-list", parts, `args.a.exists(x, x.t.exists(y, x.t.exists(z, y == z + 'a')))`},
		{"in-in-loop", texts, `args.a.exists(x, x in args.b)`},
		{"lists-compared-in-loop", texts, `args.a.exists(x, args.b + ['z'] == args.b + ['y'])`},
		{"hidden-lists-compared-in-loop", texts, `args.a.exists(x, [args.b, 1] == [args.b, 2])`},
		{"text-searched-in-loop", text, `args.t.split('').exists(i, args.t.contains('b'))`},
		{"nested-literals", `{}`, strings.Repeat("[1,2,3,4].exists(x,", 14) + "false" + strings.Repeat(")", 14)},
		{"text-doubled", text, `([args.t]` + strings.Repeat(".map(a, a+a)", 40) + `).size() == 2`},
		{"literal-doubled", `{}`, `(['aaaaaaaa']` + strings.Repeat(".map(a, a+a)", 40) + `).size() == 2`},
		{"list-doubled", `{}`, `[[1]]` + strings.Repeat(".map(a, a+a)", 40) + ` == []`},
		{"split-again", text, `args.t.split('').map(i, args.t.split('')).size() == 0`},
		{"patterns", text, repeated(`args.t.matches('(a|b)*c{900}')`, " || ", 90)},
		{"pattern-on-long-text", text, `args.t.matches('(a?){390}a{390}c')`},
		{"greatest", `{"n":[` + strings.Repeat("1,", 9999) + `1]}`, `args.n.map(i, math.greatest(args.n)) == []`},
		{"loops-in-a-row", texts, repeated(`args.a.exists(x, x == 'b')`, " || ", 100)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := mustBool(t, e, tc.src)
			s := condition.NewSubject(&condition.Input{Args: []byte(tc.args)}).WithBudget(condition.MaxDecision/10, 0)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			yes, err := p.True(s)
			runtime.ReadMemStats(&after)
			if yes || !errors.Is(err, condition.ErrSpent) || !s.Spent() {
				spent, _ := s.Cost()
				t.Errorf("True() = %t, %v after %d units, want ErrSpent", yes, err, spent)
			}
			if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 128 {
				t.Errorf("%d MiB were allocated", mib)
			}
		})
	}
}

// TestHostileToRead: what would take too long to read is rejected.
func TestHostileToRead(t *testing.T) {
	e := policyEnv(t)
	for _, tc := range []struct{ name, src string }{
		{"pattern-bomb", `args.t.matches('((a{100}){100}){100}')`},
		{"pattern-of-repetitions", `args.t.matches('` + strings.Repeat("(a{1000})", 50) + `')`},
		{"deep-loops", strings.Repeat("[1, 2].exists(x,", 60) + "true" + strings.Repeat(")", 60)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := e.Bool(tc.src); err == nil {
				t.Errorf("Bool(%.60s) succeeds", tc.src)
			}
		})
	}
}

// TestUseful: what people write is not refused.
func TestUseful(t *testing.T) {
	e := policyEnv(t)
	for _, src := range []string{
		`args.files.exists(f, f.path.startsWith('/etc') || f.path.contains('..'))`,
		`args.files.exists(f, f.tags.exists(t, t.lowerAscii() == 'secret'))`,
		`args.headers.exists(k, args.headers[k].lowerAscii().contains('password'))`,
		`args.orders.exists(o, o.lines.exists(l, l.parts.exists(p, p.sku.matches('(?i)^x-[0-9]+$'))))`,
		`args.text.matches('(?i)\\b(password|secret|token|api[-_]?key)\\b')`,
		`args.items.filter(i, i.amount > 100).size() > 3`,
		`args.items.map(i, i.amount * i.count).exists(a, a > 1000)`,
		`args.items.all(i, i in ['a', 'b', 'c', 'd'])`,
		`['/etc', '/usr', '/var', '/boot', '/root'].exists(p, args.path.startsWith(p))`,
		`(env == 'dev' ? 10 : 1000) < args.amount`,
		`args.a == args.b && string(args.a) == 'a' && args.a + args.b == 'ab'`,
		`actor.roles.exists(r, r in ['admin', 'lead']) && risk.rules.exists(r, r.startsWith('pii-'))`,
		`now.getDayOfWeek('+01:00') in [0, 6] || now.getHours('+01:00') < 8`,
	} {
		if _, err := e.Bool(src); err != nil {
			t.Errorf("Bool(%s) = %v", src, err)
		}
	}
}

// TestErrorsNeverAllow puts every failure in the place of every part of a condition that is true without it: the result
// is an error, or what the other part alone decides.
func TestErrorsNeverAllow(t *testing.T) {
	e := policyEnv(t)
	failures := []string{
		`args.none == 1`, `args.huge > 0`, `args.text > 1`, `args.list[9] == 'a'`, `args.amount / 0 == 1`, `double(args.nan) > 1.0`,
		`int(args.text) == 1`, `timestamp(args.text) < now`, `duration(args.text) > duration('1s')`, `args.amount.contains('1')`,
		`args.holed == [1, 2]`, `args.list.all(x, x > 1)`, `math.greatest(args.text) == 1`, `bool(args.text)`, `args.deep.n.x == 1`,
	}
	for _, f := range failures {
		for _, src := range []string{
			f, `!(` + f + `)`, `!!(` + f + `)`, f + ` && pinned`, `pinned && ` + f, f + ` || !pinned`, `(` + f + `) == true`,
			`(` + f + `) != true`, `(` + f + `) ? true : true`, `[` + f + `] == [true]`, `[true, ` + f + `][0]`,
			`[1].all(x, ` + f + `)`, `[1].exists(x, ` + f + `)`, `[1].exists_one(x, !(` + f + `))`, `[1].filter(x, ` + f + `) == []`,
			`[1].map(x, ` + f + `) != []`, `(` + f + `) in [true, false]`, `dyn(` + f + `) != null`, `type(` + f + `) == bool`,
		} {
			p := mustBool(t, e, src)
			if got, err := p.True(condition.NewSubject(call())); got || err == nil {
				t.Errorf("True(%s) = %t, %v, want an error", src, got, err)
			}
		}
	}
}

// TestSameAnswerAlways: neither answers nor errors depend on the order of a Go map.
func TestSameAnswerAlways(t *testing.T) {
	e := policyEnv(t)
	for _, src := range []string{
		`args.map(k, k)[3] == 'env'`, `args.exists(k, args[k] > 5)`, `args.all(k, args[k] == 1)`, `args == args`, `args.deep == args`,
	} {
		p := mustBool(t, e, src)
		want, wantErr := p.True(condition.NewSubject(call()))
		for range 50 {
			got, err := p.True(condition.NewSubject(call()))
			if got != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("True(%s) = %t, %v, before %t, %v", src, got, err, want, wantErr)
			}
		}
	}
}
