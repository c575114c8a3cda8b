package condition_test

import (
	"testing"

	"pgfsm/policy/condition"
)

// TestLibraries uses every function of CEL's extension libraries once.
func TestLibraries(t *testing.T) {
	in := &condition.Input{Env: "prod", Args: []byte(
		`{"big":9007199254740993,"list":["b","a","b"],"nested":[[1],[2,3]],"none":null,"o":{"a":{"b":1}},"t":"Hello World","u":"héé"}`)}
	for _, tc := range []struct {
		name, src string
		want      bool
		fails     bool
	}{
		{"strings-char-at", `'hello'.charAt(4) == 'o' && args.u.charAt(1) == 'é'`, true, false},
		{"strings-char-at-outside", `'hello'.charAt(-1) == ''`, false, true},
		{"strings-lower-ascii", `args.t.lowerAscii() == 'hello world'`, true, false},
		{"strings-upper-ascii", `args.t.upperAscii() == 'HELLO WORLD'`, true, false},
		{"strings-split", `args.t.split(' ') == ['Hello', 'World'] && args.t.split('o', 2) == ['Hell', ' World']`, true, false},
		{"strings-substring", `args.t.substring(6) == 'World' && args.t.substring(0, 5) == 'Hello'`, true, false},
		{"strings-trim", `' a '.trim() == 'a'`, true, false},
		{"strings-of-a-number", `args.big.trim() == ''`, false, true},

		{"math-bits", `math.bitAnd(6, 3) == 2 && math.bitOr(4, 1) == 5 && math.bitXor(5, 1) == 4 && math.bitNot(0) == -1`, true, false},
		{"math-shifts", `math.bitShiftLeft(1, 4) == 16 && math.bitShiftRight(16, 4) == 1`, true, false},
		{"math-shift-below-zero", `math.bitShiftLeft(1, -1) == 0`, false, true},
		{"math-rounding", `math.ceil(1.2) == 2.0 && math.floor(1.8) == 1.0 && math.round(1.5) == 2.0 && math.trunc(-1.9) == -1.0`, true, false},
		{"math-sign", `math.abs(-2) == 2 && math.sign(-2.5) == -1.0`, true, false},
		{"math-extremes", `math.greatest(1, 2.5) == 2.5 && math.least([3, 1, 2]) == 1`, true, false},
		{"math-finite", `math.isFinite(1.5) && !math.isNaN(1.5) && !math.isInf(1.5)`, true, false},
		{"math-sqrt", `math.sqrt(81) == 9.0`, true, false},
		{"math-sqrt-below-zero", `math.sqrt(-1.0) < 1.0`, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := mustBool(t, policyEnv(t), tc.src)
			for range 2 {
				got, err := p.True(condition.NewSubject(in))
				if got != tc.want || (err != nil) != tc.fails {
					t.Errorf("True(%s) = %t, %v; want %t, error %t", tc.src, got, err, tc.want, tc.fails)
				}
			}
		})
	}
}

// TestLibrariesLeftOut: what the libraries of cel-go have beside those, in other libraries or later versions, is not there.
func TestLibrariesLeftOut(t *testing.T) {
	for _, src := range []string{
		`base64.encode(b'a') == ''`, `json.encode(1) == ''`, `regex.replace('a', 'b', 'c') == ''`, `ip('127.0.0.1') == ip('::1')`,
		`[1].distinct() == [1]`, `sets.contains([1], [1])`, `args.?x.hasValue()`, `optional.of(1).hasValue()`, `cel.bind(x, 1, x == 1)`,
		`[1].transformList(i, v, v) == []`, `args.transformMap(k, v, v) == args`, `[1].exists(i, v, v == 1)`,
		`'%s'.format([1]) == ''`, `'a'.replace('a', 'b') == ''`, `['a'].join() == ''`, `'a'.indexOf('a') == 0`, `'a'.lastIndexOf('a') == 0`,
		`'a'.reverse() == 'a'`, `strings.quote('a') == ''`, `now() == now`, `random() == 1`, `uuid() == ''`, `cel.@block([1], true)`,
	} {
		if _, err := policyEnv(t).Bool(src); err == nil {
			t.Errorf("Bool(%s) succeeds", src)
		}
	}
}
