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
		{"strings-format", `'%s has %d of %.2f'.format([args.t, 3, 1.5]) == 'Hello World has 3 of 1.50'`, true, false},
		{"strings-format-object", `'%s'.format([args.o]) == '{a: {b: 1}}'`, true, false},
		{"strings-format-precision", `('%.' + '101f').format([1.5]) == ''`, false, true},
		{"strings-index-of", `args.t.indexOf('o') == 4 && args.t.indexOf('o', 5) == 7 && args.u.indexOf('é') == 1`, true, false},
		{"strings-last-index-of", `args.t.lastIndexOf('o') == 7 && args.t.lastIndexOf('o', 6) == 4`, true, false},
		{"strings-join", `args.list.join() == 'bab' && args.list.join(', ') == 'b, a, b' && [].join() == ''`, true, false},
		{"strings-lower-ascii", `args.t.lowerAscii() == 'hello world'`, true, false},
		{"strings-upper-ascii", `args.t.upperAscii() == 'HELLO WORLD'`, true, false},
		{"strings-quote", `strings.quote('a"b') == '"a\\"b"'`, true, false},
		{"strings-replace", `args.t.replace('l', 'L') == 'HeLLo WorLd' && args.t.replace('l', '', 2) == 'Heo World'`, true, false},
		{"strings-reverse", `args.u.reverse() == 'ééh'`, true, false},
		{"strings-split", `args.t.split(' ') == ['Hello', 'World'] && args.t.split('o', 2) == ['Hell', ' World']`, true, false},
		{"strings-substring", `args.t.substring(6) == 'World' && args.t.substring(0, 5) == 'Hello'`, true, false},
		{"strings-trim", `' a '.trim() == 'a'`, true, false},
		{"strings-of-a-number", `args.big.trim() == ''`, false, true},

		{"lists-distinct", `args.list.distinct() == ['b', 'a'] && [1, 1.0, 1u].distinct() == [1]`, true, false},
		{"lists-flatten", `args.nested.flatten() == [1, 2, 3] && [[1, [2]]].flatten(2) == [1, 2]`, true, false},
		{"lists-has-all", `args.list.hasAll(['a']) && !args.list.hasAll(['a', 'c'])`, true, false},
		{"lists-has-any", `args.list.hasAny(['c', 'a']) && !args.list.hasAny(['c'])`, true, false},
		{"lists-has-exactly", `args.list.hasExactly(['a', 'b']) && !args.list.hasExactly(['a'])`, true, false},
		{"lists-has-only", `args.list.hasOnly(['a', 'b', 'c']) && !args.list.hasOnly(['a'])`, true, false},
		{"lists-range", `lists.range(3) == [0, 1, 2] && lists.range(10000).size() == 10000`, true, false},
		{"lists-range-too-long", `lists.range(10001).size() == 10001`, false, true},
		{"lists-reverse", `args.list.reverse() == ['b', 'a', 'b'] && [1, 2].reverse() == [2, 1]`, true, false},
		{"lists-slice", `args.list.slice(0, 2) == ['b', 'a']`, true, false},
		{"lists-slice-outside", `args.list.slice(0, 4) == []`, false, true},
		{"lists-sort", `args.list.sort() == ['a', 'b', 'b'] && [3, 1, 2].sort() == [1, 2, 3]`, true, false},
		{"lists-sort-mixed", `[1, dyn('a')].sort() == []`, false, true},
		{"lists-sort-lists", `dyn(args.nested).sort() == []`, false, true},
		{"lists-sort-by", `args.list.sortBy(x, x == 'b' ? 0 : 1) == ['b', 'b', 'a']`, true, false},
		{"lists-sort-by-keeps-order", `lists.range(100).sortBy(x, x % 2 == 0)[50] == 0`, true, false},
		{"lists-first", `args.list.first().value() == 'b' && !dyn([]).first().hasValue()`, true, false},
		{"lists-last", `args.list.last() == optional.of('b')`, true, false},

		{"sets-contains", `sets.contains(args.list, ['a']) && !sets.contains(['a'], args.list)`, true, false},
		{"sets-equivalent", `sets.equivalent(args.list, ['a', 'b']) && !sets.equivalent(args.list, ['a'])`, true, false},
		{"sets-intersects", `sets.intersects(args.list, ['a', 'c']) && !sets.intersects(args.list, [])`, true, false},
		{"sets-of-text", `sets.contains(dyn('a'), ['a'])`, false, true},

		{"math-bits", `math.bitAnd(6, 3) == 2 && math.bitOr(4, 1) == 5 && math.bitXor(5, 1) == 4 && math.bitNot(0) == -1`, true, false},
		{"math-shifts", `math.bitShiftLeft(1, 4) == 16 && math.bitShiftRight(16, 4) == 1`, true, false},
		{"math-shift-below-zero", `math.bitShiftLeft(1, -1) == 0`, false, true},
		{"math-rounding", `math.ceil(1.2) == 2.0 && math.floor(1.8) == 1.0 && math.round(1.5) == 2.0 && math.trunc(-1.9) == -1.0`, true, false},
		{"math-sign", `math.abs(-2) == 2 && math.sign(-2.5) == -1.0`, true, false},
		{"math-extremes", `math.greatest(1, 2.5) == 2.5 && math.least([3, 1, 2]) == 1`, true, false},
		{"math-finite", `math.isFinite(1.5) && !math.isNaN(1.5) && !math.isInf(1.5)`, true, false},
		{"math-sqrt", `math.sqrt(81) == 9.0`, true, false},
		{"math-sqrt-below-zero", `math.sqrt(-1.0) < 1.0`, false, true},

		{"optionals-select", `args.?o.?a.?b.orValue(0) == 1 && args.?x.?y.orValue(5) == 5`, true, false},
		{"optionals-index", `args[?'t'].hasValue() && args.list[?9].orValue('z') == 'z'`, true, false},
		{"optionals-has-value", `args.?t.hasValue('Hello World') && !args.?x.hasValue('a')`, true, false},
		{"optionals-or", `args.?x.or(args.?t).value() == 'Hello World'`, true, false},
		{"optionals-value-of-none", `args.?x.value() == 1`, false, true},
		{"optionals-of-non-zero", `!optional.ofNonZeroValue('').hasValue() && optional.none() == args.?x`, true, false},
		{"optionals-map", `args.?o.optMap(o, o.a.b + 1).value() == 2 && !args.?x.optMap(x, x.y).hasValue()`, true, false},
		{"optionals-flat-map", `args.?o.optFlatMap(o, o.?x).orValue(7) == 7`, true, false},
		{"optionals-unwrap", `[args.?t, args.?x].unwrapOpt() == ['Hello World'] && optional.unwrap([args.?x]) == []`, true, false},
		{"optionals-in-literals", `[?args.?x, 'a'] == ['a'] && {?'k': args.?x} == {}`, true, false},
		{"optionals-of-null", `args.?none.hasValue() && args.?none == optional.of(null)`, true, false},
		{"optionals-through-text", `args.?t.?x.hasValue()`, false, true},

		{"bindings", `cel.bind(words, args.t.split(' '), words.size() == 2 && words[0] == 'Hello')`, true, false},
		{"bindings-nested", `cel.bind(a, 1, cel.bind(b, a + 1, a + b)) == 3`, true, false},
		{"bindings-fail", `cel.bind(x, args.missing, x == 1)`, false, true},
		{"bindings-unused", `cel.bind(x, args.missing, true)`, true, false},
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
		`[1].transformList(i, v, v) == []`, `{'a': 1}.transformMap(k, v, v) == {}`, `[1].exists(i, v, v == 1)`,
		`now() == now`, `random() == 1`, `uuid() == ''`, `cel.@block([1], true)`,
	} {
		if _, err := policyEnv(t).Bool(src); err == nil {
			t.Errorf("Bool(%s) succeeds", src)
		}
	}
}
