package condition_test

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"pgfsm/policy/condition"
)

// TestNumbersAreThoseOfTheTool: conditions judge exactly the numbers in the arguments.
func TestNumbersAreThoseOfTheTool(t *testing.T) {
	const args = `{"above":100.000000000000001,"big":9007199254740993,"bigd":9007199254740993.0,"bigd2":9007199254740992.0,` +
		`"deep":{"x":[9007199254740993]},"far":12345678901234567890123.0,"list":[100.000000000000001,9007199254740993],` +
		`"neg":-100.000000000000001,"seventeen":0.10000000000000001,"short":0.1,"sub":5e-324,"subl":5.1e-324,` +
		`"text":"100.000000000000001","zero":-0.0}`
	const digits, mixed = "more digits than a double holds", "beyond 2^53 does not compare with a double"
	for _, tc := range []struct {
		name, src string
		want      bool
		fails     string
	}{
		{"long", `args.above > 100`, false, digits},
		{"long-in", `args.above in [100, 100.0]`, false, digits},
		{"long-in-a-list", `args.list == args.list`, false, digits},
		{"long-in-a-loop", `args.list.exists(x, x == 9007199254740994)`, false, digits},
		{"long-is-there", `has(args.above) && size(args.list) == 2`, true, ""},
		{"long-sum", `args.above + 1.0 > 0.0`, false, digits},
		{"long-negation", `-args.neg > 0.0`, false, digits},
		{"long-conversion", `double(args.above) > 100.0`, false, digits},
		{"beyond-int", `args.far > 9223372036854775807`, false, digits},
		{"as-written", `args.short == 0.1 && args.short in [0.1] && args.short + 0.2 > 0.3`, true, ""},
		{"zero", `args.zero == 0 && args.zero == 0.0 && !(args.zero < 0)`, true, ""},

		{"int-beyond-double-in", `args.bigd2 in [1, 9007199254740993]`, false, mixed},
		{"int-beyond-double-greatest", `math.greatest(9007199254740992.0, args.big) == args.big`, false, mixed},
		{"int-beyond-double-least-of-three", `math.least(args.big, 9007199254740992.0, 1) == 1`, false, mixed},
		{"ints", `args.big > 9007199254740992 && args.big in [1, 9007199254740993] && args.big != 9007199254740992`, true, ""},
		{"int-of-2^53-and-double", `args.bigd2 == 9007199254740992 && args.bigd2 in [9007199254740992]`, true, ""},
		{"unsigned", `9007199254740993u > 9007199254740992u && !(dyn(9007199254740993u) == args.big + 1)`, true, ""},

		{"int-to-double", `double(args.big) > 9007199254740992.0`, false, "with all its digits"},
		{"text-to-double", `double(args.text) > 100.0`, false, "with all its digits"},
		{"text-to-double-in-hexadecimal", `double('0x1p-2') > 0.0`, false, "with all its digits"},
		{"text-to-double-that-fits", `double('100.5') > 100.0 && double('+1e2') == 100.0 && double(7) == 7.0`, true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := mustBool(t, policyEnv(t), tc.src)
			got, err := p.True(condition.NewSubject(&condition.Input{Args: []byte(args)}))
			if fails := tc.fails != "" || !tc.want; got != tc.want || (err != nil) != fails || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("True(%s) = %t, %v; want %t, %q", tc.src, got, err, tc.want, tc.fails)
			}
		})
	}
}

// held reports whether an int or a double holds a number, and whether it is an integer beyond 2^53 or a double.
func held(literal string) (ok, large, double bool) {
	exact, _ := new(big.Rat).SetString(literal)
	if !strings.Contains(literal, ".") {
		n, err := strconv.ParseInt(literal, 10, 64)
		return err == nil, n > 1<<53 || n < -1<<53, false
	}
	f, _ := strconv.ParseFloat(literal, 64)
	shortest, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'e', -1, 64))
	return shortest.Cmp(exact) == 0, false, true
}

// TestNumbersCompareAsTheyAreWritten holds all comparisons to exact arithmetic, for numbers about where doubles end: each
// is right, or fails because a number is not held or an integer beyond 2^53 meets a double.
func TestNumbersCompareAsTheyAreWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 9))
	heads := []string{"9007199254740992", "9007199254740993", "100", "0.1", "99999999999999999", "1", "0", "4503599627370497.5"}
	draw := func() string {
		s := heads[r.IntN(len(heads))]
		if r.IntN(3) == 0 && !strings.Contains(s, ".") {
			s += ".0"
		}
		if strings.Contains(s, ".") && r.IntN(2) == 0 {
			s += strings.Repeat("0", r.IntN(14)) + strconv.Itoa(r.IntN(10))
		}
		if r.IntN(4) == 0 && s != "0" {
			s = "-" + s
		}
		if strings.Contains(s, ".") && r.IntN(5) == 0 {
			s += "e" + strconv.Itoa(r.IntN(5)-2)
		}
		return s
	}
	programs := make(map[string]*condition.Program)
	for _, op := range []string{"<", "<=", ">", ">=", "==", "!="} {
		programs[op] = mustBool(t, policyEnv(t), "args.a "+op+" args.b")
	}
	programs["in"] = mustBool(t, policyEnv(t), "args.a in [args.b]")
	for range 5000 {
		a, b := draw(), draw()
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		c := x.Cmp(y)
		s := condition.NewSubject(&condition.Input{Args: fmt.Appendf(nil, `{"a":%s,"b":%s}`, a, b)})
		want := map[string]bool{"<": c < 0, "<=": c <= 0, ">": c > 0, ">=": c >= 0, "==": c == 0, "!=": c != 0, "in": c == 0}
		okA, largeA, doubleA := held(a)
		okB, largeB, doubleB := held(b)
		fails := !okA || !okB || largeA && doubleB || largeB && doubleA
		for op, p := range programs { // in any order
			if got, err := p.True(s.WithBudget(condition.MaxDecision, 0)); (err != nil) != fails || got != (want[op] && !fails) {
				t.Fatalf("%s %s %s = %t, %v, want an error %t", a, op, b, got, err, fails)
			}
		}
	}
}

// TestRoundedLiterals: a number that is written out in an expression is what is meant, or refused.
func TestRoundedLiterals(t *testing.T) {
	for _, tc := range []struct {
		src    string
		column int // 0: fine
	}{
		{`args.n > 100.000000000000001`, 10},
		{`args.n > -100.000000000000001`, 10},
		{`args.s == 'é' && args.n in [1.5, 9007199254740993.0]`, 34},
		{`args.n > 0.1 && args.n < -1.5e3 && args.n != 9007199254740992.0 && args.n == 1e23 && args.n > .5`, 0},
		{"args.n > 0.50 &&\n  args.n == 1.0000", 0},
	} {
		_, err := policyEnv(t).Bool(tc.src)
		var e *condition.Error
		if tc.column == 0 && err != nil || tc.column > 0 && (!errors.As(err, &e) || e.Column != tc.column ||
			!strings.Contains(e.Error(), "more digits than a double holds; write ")) {
			t.Errorf("Bool(%s) = %v, want column %d", tc.src, err, tc.column)
		}
	}
}

// TestHasOfWhatHasNoMembers: to ask a text for a member is an error and no answer.
func TestHasOfWhatHasNoMembers(t *testing.T) {
	p := mustBool(t, policyEnv(t), `has(args.opts.force)`)
	for _, tc := range []struct {
		name, opts  string
		want, fails bool
	}{
		{"there", `{"force":false}`, true, false},
		{"not-there", `{}`, false, false},
		{"text", `"force"`, false, true},
		{"number", `1`, false, true},
		{"null", `null`, false, true},
		{"list", `["force"]`, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := p.True(condition.NewSubject(&condition.Input{Args: []byte(`{"opts":` + tc.opts + `}`)}))
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("has() of %s = %t, %v", tc.opts, got, err)
			}
		})
	}
}
