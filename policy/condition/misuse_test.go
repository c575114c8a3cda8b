package condition_test

import (
	"fmt"
	"strings"
	"testing"

	"pgfsm/policy/condition"
)

func kind(k condition.Kinds) *condition.Shape { return &condition.Shape{Kinds: k} }

// shaped are the arguments that the tests of misuse have.
var shaped = &condition.Shape{Kinds: condition.KindObject, Members: map[string]*condition.Shape{
	"any": nil, "bool": kind(condition.KindBool), "n": kind(condition.KindNumber), "null": kind(condition.KindNull),
	"text": kind(condition.KindText), "texts": {Kinds: condition.KindList, Items: kind(condition.KindText)},
	"maybe": kind(condition.KindText | condition.KindNull), "list": kind(condition.KindList),
	"open": {Kinds: condition.KindObject, Open: true, Members: map[string]*condition.Shape{"n": kind(condition.KindNumber)}},
	"files": {Kinds: condition.KindList, Items: &condition.Shape{Kinds: condition.KindObject,
		Members: map[string]*condition.Shape{"path": kind(condition.KindText)}}},
}}

func TestMisuses(t *testing.T) {
	for _, tc := range []struct {
		src   string
		place string // and what, if it is an unknown name
	}{
		{`args.n > 1`, ""}, {`args.n == 1.0`, ""}, {`args.any > 1`, ""}, {`args.any.x.y == 1`, ""}, {`args == {}`, ""},
		{`args.open.x == 1`, ""}, {`args.open.n + 1 == 2`, ""}, {`args.maybe == null`, ""}, {`args.maybe.startsWith('a')`, ""},
		{`args['n'] == 1`, ""}, {`'n' in args`, ""}, {`args.exists(k, k == 'n')`, ""}, {`args.text in args.texts`, ""},
		{`args.texts[0].size() > 1`, ""}, {`args.files.map(f, f.path).exists(p, p == 'x')`, ""}, {`args.list[0] == 1`, ""},
		{`double(args.text) > 1.0`, ""}, {`timestamp(args.text) < now`, ""}, {`(args.bool ? args.n : 0) > 1`, ""},
		{`args.n + 1.5 > 2.0`, ""}, {`args.texts == []`, ""}, {`actor.id == args.text`, ""}, {`args.text in actor.roles`, ""},

		{`args.text.split(',') == ['a']`, ""},

		{`args.files.exists_one(f, f.path.matches('^/'))`, ""}, {`size(args.texts) > 1`, ""}, {`args.texts + ['a'] == []`, ""},

		{`args.x == 1`, "1:6 unknown"}, {`has(args.x)`, "1:4 unknown"}, {`args['x'] == 1`, "1:6 unknown"}, {`'x' in args`, "1:1 unknown"},
		{`pinned && args.x == 1`, "1:16 unknown"}, {`args.files.exists(f, f.name == '')`, "1:24 unknown"},
		{`args.files[0].name == 'x'`, "1:15 unknown"}, {`args.files.filter(f, f.x == 1) == []`, "1:24 unknown"},
		{"true ||\n  args.x", "2:8 unknown"},
		{`args.text > 5`, "1:11"}, {`args.n == '5'`, "1:8"}, {`'5' != args.n`, "1:5"}, {`args.text.n == 1`, "1:11"},
		{`args.n.startsWith('a')`, "1:18"}, {`args.text.startsWith(args.n)`, "1:21"}, {`!args.n`, "1:1"}, {`args.n && true`, "1:8"},
		{`args.n ? true : false`, "1:6"}, {`args.text in [1, 2]`, "1:11"}, {`args.n in args.texts`, "1:8"}, {`args.n in actor.roles`, "1:8"},
		{`1 in args.n`, "1:3"}, {`args.n[0] == 1`, "1:7"}, {`args.texts['a'] == 'b'`, "1:11"}, {`args.n.exists(x, true)`, "1:6"},
		{`args.text == null`, "1:11"}, {`-args.text < 5`, "1:1"}, {`args.text + 1 == 2`, "1:11"}, {`size(args.n) > 1`, "1:5"},
		{`math.greatest(args.text, 1) > 5`, "1:14"}, {`(pinned ? args.text : 'x') == 5`, "1:28"}, {`args.texts.exists(x, x > 5)`, "1:24"},

		{`args.n.split(',') == []`, "1:13"},
		{`args.maybe > 5`, "1:12"}, {`args.list == 'x'`, "1:11"},
	} {
		r, err := policyEnv(t).Read(tc.src)
		if err != nil {
			t.Errorf("Read(%q) = %v", tc.src, err)
			continue
		}
		var got []string
		for _, m := range r.Misuses(shaped) {
			s := fmt.Sprintf("%d:%d", m.Line, m.Column)
			if m.Unknown {
				s += " unknown"
			}
			got = append(got, s)
			if strings.Contains(m.Problem, "%!") {
				t.Errorf("Misuses(%s) says %q", tc.src, m.Problem)
			}
		}
		if all := strings.Join(got, ", "); all != tc.place {
			t.Errorf("Misuses(%s) = %v at %q, want %q", tc.src, r.Misuses(shaped), all, tc.place)
		}
		if more := r.Misuses(nil); len(more) > 0 {
			t.Errorf("Misuses(%s) of unknown arguments = %v", tc.src, more)
		}
	}
}

// TestMisusesAreMisuses: an expression with one operation on an argument that is reported fails for every call, or says
// the same.
func TestMisusesAreMisuses(t *testing.T) {
	values := map[string][]string{
		"any": {`1`, `"a"`, `null`, `true`, `[]`, `{}`, `[1]`}, "bool": {`true`, `false`}, "n": {`1`, `1.5`, `0`}, "null": {`null`},
		"text": {`"a"`, `""`, `"1"`}, "texts": {`[]`, `["a"]`}, "maybe": {`"a"`, `null`}, "list": {`[]`, `[1,"a"]`},
		"open": {`{}`, `{"n":1,"x":2}`}, "files": {`[]`, `[{"path":"a"}]`, `[{}]`},
	}
	var expressions []string
	for _, a := range shaped.Names() {
		for _, op := range []string{"==", "!=", "<", ">=", "in", "&&", "||"} {
			for _, b := range []string{`1`, `1.5`, `"a"`, `null`, `true`, `[1]`, `["a"]`, `[]`, `{'n': 1}`, `args.any`, `args.n`, `args.texts`} {
				expressions = append(expressions, fmt.Sprintf("args.%s %s %s", a, op, b), fmt.Sprintf("%s %s args.%s", b, op, a))
			}
		}
		for _, f := range []string{"size(@) == 1", "@ + 1 == 2", "@ + 'a' == 'aa'", "@[0] == 1", "@['n'] == 1", "@.startsWith('a')",
			"!@", "-@ == -1", "@.n == 1", "has(@.n)", "@.exists(x, x == 1)", "@.all(x, x == 'a')", "string(@) == 'a'", "int(@) == 1",
			"@ % 2 == 1", "@.matches('a')", "math.greatest(@, 1) == 1", "'n' in @", "@ ? true : false", "@.lowerAscii() == 'a'", "@.x.y == 1"} {
			expressions = append(expressions, strings.ReplaceAll(f, "@", "args."+a))
		}
	}
	var documents []string // that have the shape: one argument each way, beside several of any and n
	for _, name := range shaped.Names() {
		for _, v := range values[name] {
			for _, n := range values["n"] {
				for _, other := range values["any"] {
					doc := map[string]string{"any": other, "n": n, "texts": `["a"]`}
					doc[name] = v
					var members []string
					for _, k := range shaped.Names() {
						if doc[k] != "" {
							members = append(members, fmt.Sprintf("%q:%s", k, doc[k]))
						}
					}
					documents = append(documents, "{"+strings.Join(members, ",")+"}")
				}
			}
		}
	}
	reported, silent := 0, 0
	for _, src := range expressions {
		r, err := policyEnv(t).Read(src)
		if err != nil {
			continue
		}
		p, err := policyEnv(t).Bool(src)
		if err != nil {
			continue
		}
		if len(r.Misuses(shaped)) == 0 {
			silent++
			continue
		}
		reported++
		seen := map[bool]bool{}
		for _, doc := range documents {
			if yes, err := p.True(condition.NewSubject(&condition.Input{Args: []byte(doc)})); err == nil {
				seen[yes] = true
			}
		}
		// The other side of && and || can decide, and an empty list has no elements to be misused.
		if len(seen) > 1 && !strings.Contains(src, "&&") && !strings.Contains(src, "||") && !strings.Contains(src, "all(") {
			t.Errorf("%s is reported (%v), but comes to true and to false", src, r.Misuses(shaped))
		}
	}
	t.Logf("%d expressions reported, %d not", reported, silent)
	if reported < 100 || silent < 100 {
		t.Error("too little was compared")
	}
}
