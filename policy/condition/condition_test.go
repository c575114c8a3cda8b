package condition_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/policy/condition"
)

func policyEnv(t testing.TB) *condition.Env {
	t.Helper()
	e, err := condition.PolicyEnv()
	if err != nil {
		t.Fatalf("PolicyEnv() = %v", err)
	}
	return e
}

func mustBool(t testing.TB, e *condition.Env, src string) *condition.Program {
	t.Helper()
	p, err := e.Bool(src)
	if err != nil {
		t.Fatalf("Bool(%q) = %v", src, err)
	}
	return p
}

// call is the call that most tests judge.
func call() *condition.Input {
	yes, no := true, false
	return &condition.Input{
		Server: "pay", Tool: "refund", Env: "prod",
		Actor: condition.Actor{ID: "ann", Roles: []string{"clerk", "lead"}},
		Args: []byte(`{"amount":1200,"big":99999999999999999999,"deep":{"list":[1,{"x":"y"}],"n":null},"double":1.0,` +
			`"env":"dev","half":0.5,"holed":[1,1e400],"huge":1e400,"list":["a","B"],"math":1,"max":1,"min":0,` +
			`"nan":"NaN","on":true,"risk":{"score":0},"text":"SSN 1","tiny":1e-400,"tool":"echo"}`),
		Annotations: condition.Annotations{ReadOnly: &yes, Destructive: &no},
		Pinned:      true,
		Now:         "2026-03-04T05:06:07+02:00",
		Risk:        condition.Risk{Score: 70, Mode: "review", Rules: []string{"r1", "r2"}},
	}
}

// TestJudge goes through every name and through what the package comment says of values. An empty error means none; a
// condition that fails is never true.
func TestJudge(t *testing.T) {
	for _, tc := range []struct {
		name, src string
		want      bool
		fails     string
	}{
		{"server", `server == 'pay'`, true, ""},
		{"tool", `tool == 'refund'`, true, ""},
		{"actor-id", `actor.id == 'ann'`, true, ""},
		{"read-only", `tool_annotations.readOnlyHint`, true, ""},
		{"destructive", `tool_annotations.destructiveHint`, false, ""},
		{"idempotent-by-default", `tool_annotations.idempotentHint`, false, ""},
		{"open-world-by-default", `tool_annotations.openWorldHint`, true, ""},
		{"pinned", `pinned`, true, ""},
		{"now", `now == timestamp('2026-03-04T03:06:07Z')`, true, ""},
		{"now-is-in-utc", `now.getHours() == 3 && now.getDayOfWeek() == 3`, true, ""},
		{"now-at-an-offset", `now.getHours('+02:00') == 5 && now.getHours('UTC') == 3`, true, ""},
		{"risk-score", `risk.score == 70`, true, ""},
		{"risk-mode", `risk.mode in ['review', 'danger']`, true, ""},

		{"args-named-like-names", `env == 'prod' && tool == 'refund' && risk.score == 70`, true, ""},
		{"args-named-like-names-are-args", `args.env == 'dev' && args.risk.score == 0 && args.tool == 'echo'`, true, ""},

		{"int-and-double", `args.amount == 1200.0 && args.double == 1 && args.double < 2 && args.half < 1`, true, ""},
		{"types", `type(args.amount) == int && type(args.double) == double && type(args.on) == bool`, true, ""},
		{"text-is-no-number", `args.text > 1`, false, "no such overload"},
		{"number-is-no-text", `args.amount == '1200'`, false, ""},
		{"dyn-is-no-bool", `args.amount && true`, false, "no such overload"},
		{"missing", `args.none == 1`, false, "no such key: none"},
		{"missing-beside-true", `args.none == 1 || true`, true, ""},
		{"missing-beside-false", `args.none == 1 && false`, false, ""},
		{"has", `has(args.amount) && !has(args.none)`, true, ""},
		{"has-on-the-way", `has(args.none.deeper)`, false, "no such key: none"},
		{"has-a-number-that-does-not-fit", `has(args.huge)`, true, ""},
		{"index-out-of-range", `args.list[2] == 'a'`, false, "index out of bounds: 2"},
		{"index-by-name", `args['amount'] == 1200 && 'amount' in args && !('none' in args)`, true, ""},
		{"null", `args.deep.n == null`, true, ""},
		{"object-equal", `args.deep == args.deep && args.deep.list == [1.0, args.deep.list[1]]`, true, ""},
		{"object-not-equal", `args.deep == args.risk || args.deep == 1`, false, ""},
		{"object-in-order", `args.map(k, k)[0] == 'amount' && args.risk.map(k, k) == ['score']`, true, ""},
		{"loops", `args.list.exists(x, x.lowerAscii() == 'b') && args.list.all(x, x != 'c') &&
			args.list.exists_one(x, x == 'a') && args.list.filter(x, x == 'a') == ['a'] && args.list.map(x, x == 'a', 1) == [1]`, true, ""},
		{"loop-over-items", `args.list.exists(item, item == 'a')`, true, ""},
		{"loop-over-names", `args.deep.exists(k, k == 'n' && args.deep[k] == null)`, true, ""},
		{"list-added", `args.list + ['c'] == ['a', 'B', 'c']`, true, ""},
		{"matches", `args.text.matches('(?i)^ssn') && matches(args.text, '[0-9]$')`, true, ""},
		{"math", `math.greatest([1, 2.5]) == 2.5 && math.least(args.amount, 3) == 3 && math.ceil(args.half) == 1.0`, true, ""},

		{"too-large-for-int", `args.big > 0`, false, "99999999999999999999 is too large for int"},
		{"too-large-for-double", `args.huge > 0`, false, "1e400 is too large for double"},
		{"too-small-for-double", `args.tiny == 0`, false, "1e-400 is too small for double"},
		{"too-large-in-list", `args.holed == [1, 1]`, false, "1e400 is too large for double"},
		{"too-large-in", `1 in args.holed`, false, "1e400 is too large for double"},
		{"too-large-in-loop", `args.holed.all(x, x >= 0)`, false, "1e400 is too large for double"},
		{"too-large-elsewhere", `args.holed[0] == 1 && size(args.holed) == 2`, true, ""},
		{"too-large-in-object", `args == args`, false, "99999999999999999999 is too large for int"}, // of several errors the first
		{"overflow", `9223372036854775807 + args.amount > 0`, false, "integer overflow"},
		{"division-by-zero", `args.amount / 0 > 0`, false, "division by zero"},
		{"nan-of-text", `double(args.nan) > 1000.0`, false, "not a finite number"},
		{"root-of-less-than-zero", `math.sqrt(-1.0) < 1.0`, false, "not a finite number"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := mustBool(t, policyEnv(t), tc.src)
			s := condition.NewSubject(call())
			for range 2 {
				got, err := p.True(s)
				if got != tc.want || (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("True(%s) = %t, %v; want %t, %q", tc.src, got, err, tc.want, tc.fails)
				}
			}
		})
	}
}

// TestAnnotationDefaults holds what an absent hint counts as to MCP.
func TestAnnotationDefaults(t *testing.T) {
	p := mustBool(t, policyEnv(t), `!tool_annotations.readOnlyHint && tool_annotations.destructiveHint &&
		!tool_annotations.idempotentHint && tool_annotations.openWorldHint`)
	if got, err := p.True(condition.NewSubject(&condition.Input{})); !got || err != nil {
		t.Errorf("True() = %t, %v, want MCP's defaults", got, err)
	}
	yes, no := true, false
	other := condition.Annotations{ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &no}
	p = mustBool(t, policyEnv(t), `tool_annotations.readOnlyHint && !tool_annotations.destructiveHint &&
		tool_annotations.idempotentHint && !tool_annotations.openWorldHint`)
	if got, err := p.True(condition.NewSubject(&condition.Input{Annotations: other})); !got || err != nil {
		t.Errorf("True() = %t, %v, want what the tool says", got, err)
	}
}

// TestRefused: what is wrong is said when the expression is read, with its place.
func TestRefused(t *testing.T) {
	for _, tc := range []struct {
		name, src    string
		line, column int
		says, remedy string
	}{
		{"undeclared", `risk.scor == 1`, 1, 5, "undeclared reference to 'risk.scor'", ""},
		{"undeclared-claim", `actor.claims.x == ''`, 1, 6, "undeclared reference to 'actor.claims'", "names no claims"},
		{"column-in-characters", `'é😀' == foo`, 1, 9, "undeclared reference to 'foo'", "args.NAME"},
		{"first-of-several", "(bar == 1) &&\nfoo == 1", 1, 2, "'bar'", ""},
		{"python", `risk.score > 1 and pinned`, 1, 16, "Syntax error", "CEL"},
		{"empty", ``, 1, 1, "Syntax error", "CEL"},
		{"int-and-double", `risk.score == 50.0`, 1, 12, "found no matching overload", "write risk.score == 50"},
		{"text-and-number", `server > 1`, 1, 8, "found no matching overload", "do not go together"},
		{"dyn", `args.force`, 1, 1, "not known before the call", "== true"},
		{"pattern-from-args", `env.matches(args.p)`, 1, 17, "must be written out", "startsWith"},
		{"pattern-broken", `env.matches('(')`, 1, 13, "missing closing )", "RE2"},
		{"pattern-lookahead", `env.matches('(?=a)')`, 1, 13, "invalid or unsupported Perl syntax", "RE2"},
		{"pattern-large", `env.matches('(a?){500}a{500}')`, 1, 13, "instructions, more than 2048", "smaller"},
		{"zone-name", `now.getHours('Europe/Berlin') == 1`, 1, 14, "time zone", "+02:00"},
		{"zone-from-args", `now.getHours(args.zone) == 1`, 1, 18, "time zone", "+02:00"},
		{"message", `google.protobuf.Int64Value{value: 1} == 1`, 1, 27, "messages", "list"},
		{"loop-takes-args", `args.list.exists(args, args == 1)`, 1, 17, "calls its element args", "another name"},
		{"written-map", `args.x == {'a': 1}`, 1, 11, "a map cannot be written", "members"},
		{"unknown-function", `env.titleAscii() == ''`, 1, 15, "undeclared reference to 'titleAscii'", ""},
		{"omitted", `'%s'.format([env]) == ''`, 1, 12, "do not have the function format", "substring"},
		{"no-clock", `timestamp() == now`, 1, 10, "found no matching overload", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := policyEnv(t).Bool(tc.src)
			var e *condition.Error
			if p != nil || !errors.As(err, &e) {
				t.Fatalf("Bool(%s) = %v, %v, want an *Error", tc.src, p, err)
			}
			if e.Line != tc.line || e.Column != tc.column {
				t.Errorf("Bool(%s) is refused at %d:%d, want %d:%d", tc.src, e.Line, e.Column, tc.line, tc.column)
			}
			if !strings.Contains(e.Problem, tc.says) || !strings.Contains(e.Remedy, tc.remedy) || strings.ContainsAny(e.Error(), "\n\r") {
				t.Errorf("Bool(%s) says %q, want %q with %q in one line", tc.src, e, tc.says, tc.remedy)
			}
		})
	}
}

// TestNames holds the list to what is declared: each name is there where the list says, and nowhere else, with its type.
func TestNames(t *testing.T) {
	risk, err := condition.RiskEnv([]string{"NAME"}, "NAME")
	check.NoError(t, err)
	policies, err := condition.PolicyEnv("NAME")
	check.NoError(t, err)
	score, err := condition.ScoreEnv()
	check.NoError(t, err)
	item, err := condition.ItemEnv("NAME")
	check.NoError(t, err)
	types := map[string]string{
		"dyn": "item", "string": "''", "int": "0", "double": "0.0", "bool": "true", "list(string)": "['']", "map(string, dyn)": "args",
		"timestamp": "timestamp('2026-01-01T00:00:00Z')",
	}
	for _, n := range condition.Names() {
		like, ok := types[strings.TrimPrefix(n.Type, "google.protobuf.")]
		if !ok {
			t.Errorf("%s has the type %q", n.Name, n.Type)
			continue
		}
		for where, e := range map[string]*condition.Env{"policy": policies, "risk": risk, "score": score, "item": item} {
			_, err := e.Bool("[" + n.Name + ", " + like + "][0] == " + n.Name + " && type(" + n.Name + ") == type(" + like + ")")
			if there := strings.Contains(n.Where, where); there != (err == nil) {
				t.Errorf("%s in %s expressions: %v, want there %t", n.Name, where, err, there)
			}
			if n.Meaning == "" {
				t.Errorf("%s has no meaning", n.Name)
			}
		}
	}
	if n := len(condition.Names()); n != 30 {
		t.Errorf("Names() has %d names, want 30", n)
	}
}

func TestNumber(t *testing.T) {
	e, err := condition.RiskEnv([]string{"rows", "failed", "unset"})
	check.NoError(t, err)
	for _, tc := range []struct {
		name, src string
		want      float64
		fails     string
	}{
		{"int", `70 + 5`, 75, ""},
		{"double", `score + 0.5`, 10.5, ""},
		{"dyn", `args.amount`, 1200, ""},
		{"var", `math.greatest(score, 70.0 + math.least(vars.rows, 100.0) / 4.0)`, 95, ""},
		{"dyn-is-no-number", `args.text`, 0, "string, not a number"},
		{"dyn-is-bool", `args.on`, 0, "bool, not a number"},
		{"missing", `args.none`, 0, "no such key: none"},
		{"failed-var", `vars.failed * 0.0`, 0, "vars.failed failed: no such key: amount"},
		{"unset-var", `vars.unset`, 0, "vars.unset has no value"},
		{"too-large", `args.huge`, 0, "too large for double"},
		{"infinite", `1.0 / 0.0`, 0, "not a finite number"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := e.Number(tc.src)
			if err != nil {
				t.Fatalf("Number(%s) = %v", tc.src, err)
			}
			s := condition.NewSubject(call()).WithScore(10).WithVar("rows", 7).WithVar("rows", 400).
				WithFailedVar("failed", "no such key: amount")
			got, err := p.Value(s)
			if got != tc.want || (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("Value(%s) = %v, %v; want %v, %q", tc.src, got, err, tc.want, tc.fails)
			}
		})
	}
	for _, src := range []string{`'7'`, `pinned`, `[1]`, `args`, `now`, `null`, `risk.score`, `vars.other`} {
		if _, err := e.Number(src); err == nil {
			t.Errorf("Number(%s) succeeds", src)
		}
	}
}

func TestVars(t *testing.T) {
	for _, tc := range []struct {
		name string
		vars []string
		ok   bool
	}{
		{"none", nil, true},
		{"longest", []string{strings.Repeat("x", condition.MaxVarName)}, true},
		{"one-longer", []string{strings.Repeat("x", condition.MaxVarName+1)}, false},
		{"twice", []string{"a", "b", "a"}, false},
		{"empty", []string{""}, false},
		{"dot", []string{"a.b"}, false},
		{"word-of-cel", []string{"in"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := condition.RiskEnv(tc.vars); (err == nil) != tc.ok {
				t.Errorf("RiskEnv(%v) = %v, want %t", tc.vars, err, tc.ok)
			}
		})
	}
}

// TestSubject: risk can be set later, and values are those of the call.
func TestSubject(t *testing.T) {
	e := policyEnv(t)
	p := mustBool(t, e, `risk.score == 5 && risk.mode == 'safe' && risk.rules == ['z']`)
	s := condition.NewSubject(call())
	if got, err := p.True(s); got || err != nil {
		t.Errorf("True() before WithRisk() = %t, %v", got, err)
	}
	r := condition.Risk{Score: 5, Mode: "safe", Rules: []string{"z"}}
	if got, err := p.True(s.WithRisk(r)); !got || err != nil {
		t.Errorf("True() after WithRisk() = %t, %v", got, err)
	}
	in := call()
	in.Risk = r
	if diff := cmp.Diff(*in, s.Input()); diff != "" {
		t.Errorf("Input() differs: %s", diff)
	}
	var none *condition.Program
	if got, err := none.True(s); got || err == nil {
		t.Errorf("True() of no program = %t, %v", got, err)
	}
	if got, err := p.True(nil); got || err == nil {
		t.Errorf("True() of no subject = %t, %v", got, err)
	}
}

// TestBrokenInput: what cannot be read is an error where it is used, and only there.
func TestBrokenInput(t *testing.T) {
	e := policyEnv(t)
	for _, tc := range []struct{ name, args, now, src, fails string }{
		{"no-args", ``, "", `size(args) == 0`, "not a JSON object"},
		{"args-are-a-list", `[]`, "", `has(args.x)`, "not a JSON object"},
		{"args-twice", `{"a":1,"a":2}`, "", `args.a == 2`, "duplicate"},
		{"args-and-more", `{} {}`, "", `size(args) == 0`, "behind the JSON value"},
		{"args-cut", `{"a":[1,`, "", `has(args.a)`, "ends too early"},
		{"args-not-utf8", "{\"a\":\"\xff\"}", "", `has(args.a)`, "strict JSON"},
		{"args-too-deep", `{"a":` + strings.Repeat("[", condition.MaxArgsDepth) + strings.Repeat("]", condition.MaxArgsDepth) + `}`, "",
			`has(args.a)`, "nests too deep"},
		{"args-too-large", `{"a":"` + strings.Repeat("x", condition.MaxArgs-7) + `"}`, "", `has(args.a)`, "more than 1048576"},
		{"no-now", `{}`, "", `now.getHours() < 24`, "not an RFC 3339 time"},
		{"now-is-a-date", `{}`, "2026-01-02", `now.getHours() < 24`, "not an RFC 3339 time"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := condition.NewSubject(&condition.Input{Args: []byte(tc.args), Now: tc.now, Env: "prod"})
			got, err := mustBool(t, e, tc.src).True(s)
			if got || err == nil || !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("True(%s) = %t, %v, want an error with %q", tc.src, got, err, tc.fails)
			}
			if got, err := mustBool(t, e, `env == 'prod'`).True(s); !got || err != nil {
				t.Errorf("True() of what does not need it = %t, %v", got, err)
			}
		})
	}
	for name, args := range map[string]string{
		"depth": `{"a":` + strings.Repeat("[", condition.MaxArgsDepth-1) + strings.Repeat("]", condition.MaxArgsDepth-1) + `}`,
		"size":  `{"a":"` + strings.Repeat("x", condition.MaxArgs-8) + `"}`,
	} {
		s := condition.NewSubject(&condition.Input{Args: []byte(args)})
		if got, err := mustBool(t, e, `has(args.a) && args.a == args.a`).True(s); !got || err != nil {
			t.Errorf("%s at its limit: True() = %t, %v", name, got, err)
		}
	}
}

func TestProgramIsSharedAndSubjectsAreNot(t *testing.T) {
	p := mustBool(t, policyEnv(t), `args.list.exists(x, x == 'B') && env == 'prod' && risk.score > 50`)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if got, err := p.True(condition.NewSubject(call())); !got || err != nil {
					t.Errorf("True() = %t, %v", got, err)
				}
			}
		})
	}
	group.Wait()
}

// TestLongNames: a name is judged up to the length that costs are reckoned with, and is an error beyond.
func TestLongNames(t *testing.T) {
	p := mustBool(t, policyEnv(t), `server != '' && tool != '' && env != '' && actor.id != '' && risk.mode != ''`)
	fits := strings.Repeat("n", condition.MaxName)
	for i := range 6 {
		names := []string{fits, fits, fits, fits, fits, fits}
		names[i] += "n"
		in := &condition.Input{Server: names[0], Tool: names[1], Env: names[2], Actor: condition.Actor{ID: names[3]},
			Risk: condition.Risk{Mode: names[4]}}
		if got, err := p.True(condition.NewSubject(in)); got != (i == 5) || (err == nil) != (i == 5) {
			t.Errorf("name %d longer: True() = %t, %v", i, got, err)
		}
	}
}
