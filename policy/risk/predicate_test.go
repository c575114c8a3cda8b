package risk_test

import (
	"fmt"
	"strings"
	"testing"

	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
)

// The answers to a predicate, as they show from outside.
const (
	yes     = "yes"
	no      = "no"
	unknown = "unknown"
	broken  = "rules that raise and rules that lower disagree"
)

// ask finds out how a predicate is answered by what it makes rules do in both directions: one raises from review to
// danger, one lowers from review to safe.
func ask(tb testing.TB, predicates []risk.Predicate, args string) string {
	tb.Helper()
	raise := compile(tb, content(risk.Rule{Args: predicates, SetMode: "danger"})).Judge(fresh(args))
	lower := compile(tb, content(risk.Rule{Args: predicates, SetMode: "safe"})).Judge(fresh(args))
	failed := func(a risk.Assessment) bool { return len(a.Contributions) == 1 && a.Contributions[0].Failed != "" }
	switch {
	case raise.Mode == "danger" && lower.Mode == "safe" && !failed(raise) && !failed(lower):
		return yes
	case raise.Mode == "review" && lower.Mode == "review" && len(raise.Contributions)+len(lower.Contributions) == 0:
		return no
	case raise.Mode == "danger" && lower.Mode == "review" && failed(raise) && failed(lower) &&
		raise.Contributions[0].Matched && !lower.Contributions[0].Matched:
		return unknown
	}
	return broken
}

// values has one argument of each type.
var values = []struct{ name, args string }{
	{"missing", `{}`},
	{"null", `{"v":null}`},
	{"true", `{"v":true}`},
	{"number", `{"v":5}`},
	{"number-beyond-bounds", `{"v":5e1001}`},
	{"text", `{"v":"five"}`},
	{"empty-text", `{"v":""}`},
	{"empty-list", `{"v":[]}`},
	{"list", `{"v":["FIVE",5,true]}`},
	{"object", `{"v":{}}`},
	{"arguments-null", `null`},
	{"arguments-list", `[5]`},
	{"arguments-absent", ``},
	{"arguments-broken", `{"v":5`},
	{"arguments-twice", `{"v":5,"v":5}`},
	{"arguments-and-more", `{"v":5} {}`},
	{"arguments-not-utf8", "{\"v\":\"\xff\"}"},
}

// answers says for each op and value what the answer to each of the values is, in their order: y, n or ? for unknown.
// The last seven, arguments that are no strict object, are unknown to every op.
var answers = []struct{ op, value, want string }{
	// missing, null, true, number, beyond, text, "", [], list, {}
	{condition.OpEq, `5`, "???y??????"},
	{condition.OpEq, `6`, "???n??????"},
	{condition.OpEq, `"five"`, "?????yn???"},
	{condition.OpEq, `true`, "??y???????"},
	{condition.OpEq, `false`, "??n???????"},
	{condition.OpNe, `5`, "???n??????"},
	{condition.OpNe, `6`, "???y??????"},
	{condition.OpNe, `"five"`, "?????ny???"},
	{condition.OpNe, `false`, "??y???????"},
	{condition.OpGt, `4`, "???y??????"},
	{condition.OpGt, `5`, "???n??????"},
	{condition.OpGte, `5`, "???y??????"},
	{condition.OpGte, `6`, "???n??????"},
	{condition.OpLt, `6`, "???y??????"},
	{condition.OpLt, `5`, "???n??????"},
	{condition.OpLte, `5`, "???y??????"},
	{condition.OpLte, `4`, "???n??????"},
	{condition.OpIn, `[4,5]`, "???y??????"},
	{condition.OpIn, `[4,6]`, "???n??????"},
	{condition.OpIn, `["five","six"]`, "?????yn???"},
	{condition.OpIn, `["six",6,true]`, "??yn?nn???"},
	{condition.OpContains, `"IV"`, "?????ynn??"}, // the list: true and 5 are no texts
	{condition.OpContains, `"five"`, "?????ynny?"},
	{condition.OpContains, `5`, "???????ny?"},
	{condition.OpContains, `6`, "???????n??"},
	{condition.OpContains, `true`, "???????ny?"},
	{condition.OpMatches, `"^f.v"`, "?????yn???"},
	{condition.OpMatches, `"x"`, "?????nn???"},
	{condition.OpExists, `true`, "n?yyyyyyyy"},
	{condition.OpExists, `false`, "y?nnnnnnnn"},
}

func TestEveryOpOnEveryType(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range answers {
		seen[row.op] = true
		want := row.want + strings.Repeat("?", 7)
		if len(want) != len(values) {
			t.Fatalf("%s %s: %d answers, want %d", row.op, row.value, len(want), len(values))
		}
		for i, v := range values {
			t.Run(fmt.Sprintf("%s-%s/%s", row.op, row.value, v.name), func(t *testing.T) {
				want := map[byte]string{'y': yes, 'n': no, '?': unknown}[want[i]]
				if got := ask(t, arg("v", row.op, row.value), v.args); got != want {
					t.Errorf("%s %s of %s: %s, want %s", row.op, row.value, v.args, got, want)
				}
			})
		}
	}
	for _, op := range condition.Ops() {
		if !seen[op] {
			t.Errorf("no row for %s", op)
		}
	}
}

func TestPredicate(t *testing.T) {
	for _, test := range []struct{ name, path, op, value, args, want string }{
		{"ctrl-ssn-upper-case", "q", "contains", `"ssn"`, `{"q":"give me every SSN"}`, yes},
		{"ctrl-ssn-list", "fields", "contains", `"ssn"`, `{"fields":["name","SSN"]}`, yes},
		{"ctrl-ssn-list-not-there", "fields", "contains", `"ssn"`, `{"fields":["name","mail"]}`, no},
		{"ctrl-ssn-list-means-the-element", "fields", "contains", `"ssn"`, `{"fields":["ssn_last4"]}`, no},
		{"ctrl-ssn-list-of-objects", "fields", "contains", `"ssn"`, `{"fields":[{"name":"ssn"}]}`, unknown},
		{"ctrl-ssn-list-in-list", "fields", "contains", `"ssn"`, `{"fields":[["ssn"]]}`, unknown},
		{"ctrl-ssn-list-beside-something-else", "fields", "contains", `"ssn"`, `{"fields":[{"a":1},null,"Ssn"]}`, yes},
		{"ctrl-ssn-object", "fields", "contains", `"ssn"`, `{"fields":{"ssn":true}}`, unknown},
		{"fold-long-s", "q", "contains", `"ssn"`, `{"q":"a ſSN"}`, yes},
		{"list-number-by-another-spelling", "q", "contains", `1`, `{"q":[1.0]}`, yes},
		{"list-number-beyond-bounds", "q", "contains", `1`, `{"q":[2,1e9999]}`, unknown},

		{"eq-keeps-case", "q", "eq", `"prod"`, `{"q":"Prod"}`, no},
		{"number-is-no-text", "q", "eq", `"5"`, `{"q":5}`, unknown},
		{"text-is-no-number", "q", "eq", `5`, `{"q":"5"}`, unknown},
		{"in-number-beyond-bounds-among-texts", "q", "in", `["a",5]`, `{"q":1e9999}`, unknown},

		{"matches-anywhere", "q", "matches", `"b+"`, `{"q":"abbc"}`, yes},
		{"matches-a-bomb", "q", "matches", `"^(a+)+$"`, `{"q":"` + strings.Repeat("a", 50_000) + `!"}`, no},

		{"exact-2^53", "n", "eq", `9007199254740992`, `{"n":9007199254740992}`, yes},
		{"exact-2^53-gt", "n", "gt", `9007199254740992`, `{"n":9007199254740993}`, yes},
		{"int-beyond-2^53-and-double", "n", "gt", `0.5`, `{"n":9007199254740993}`, unknown},
		{"digits-beyond-double", "n", "eq", `0.3`, `{"n":0.30000000000000001}`, unknown},
		{"one-and-1.0", "n", "eq", `1`, `{"n":1.0}`, yes},
		{"beyond-double", "n", "gt", `1`, `{"n":1e400}`, unknown},

		{"dotted-name-is-a-name", "a.b", "eq", `1`, `{"a.b":1}`, yes},
		{"dotted-name-is-no-way", "a.b", "eq", `1`, `{"a":{"b":1}}`, unknown},
		{"pointer", "/a/b", "eq", `1`, `{"a":{"b":1},"a/b":2,"a.b":3}`, yes},
		{"pointer-escapes", "/a~1b/~0", "eq", `1`, `{"a/b":{"~":1}}`, yes},
		{"pointer-to-the-empty-name", "/", "eq", `1`, `{"":1}`, yes},
		{"pointer-through-a-list", "/a/1/b", "eq", `1`, `{"a":[0,{"b":1}]}`, yes},
		{"pointer-behind-the-list", "/a/2", "exists", `true`, `{"a":[0,1]}`, no},
		{"pointer-end-of-the-list", "/a/-", "exists", `true`, `{"a":[0,1]}`, unknown},
		{"pointer-index-with-zero", "/a/01", "exists", `true`, `{"a":[0,1]}`, unknown},
		{"pointer-through-a-text", "/a/b", "exists", `true`, `{"a":"b"}`, unknown},
		{"names-keep-case", "a", "exists", `true`, `{"A":1}`, no},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := ask(t, arg(test.path, test.op, test.value), test.args); got != test.want {
				t.Errorf("%s %s %s: %s, want %s", test.path, test.op, test.value, got, test.want)
			}
		})
	}
}

func TestSeveralPredicates(t *testing.T) {
	both := func(a, b []risk.Predicate) []risk.Predicate { return append(append([]risk.Predicate{}, a...), b...) }
	isYes, isNo, isUnknown := arg("y", "eq", "1"), arg("y", "eq", "2"), arg("u", "eq", "1")
	optional := both(arg("u", "exists", "true"), arg("u", "gt", "5"))
	for _, test := range []struct {
		name string
		args []risk.Predicate
		doc  string
		want string
	}{
		{"none", nil, `{}`, yes},
		{"yes-no", both(isYes, isNo), `{"y":1}`, no},
		{"yes-unknown", both(isYes, isUnknown), `{"y":1}`, unknown},
		{"unknown-yes", both(isUnknown, isYes), `{"y":1}`, unknown},
		{"no-unknown", both(isNo, isUnknown), `{"y":1}`, no},
		{"unknown-no", both(isUnknown, isNo), `{"y":1}`, no},
		{"optional-missing", optional, `{}`, no},
		{"optional-null", optional, `{"u":null}`, unknown},
		{"optional-mistyped", optional, `{"u":"9"}`, unknown},
		{"optional-there", optional, `{"u":9}`, yes},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := ask(t, test.args, test.doc); got != test.want {
				t.Errorf("%+v of %s: %s, want %s", test.args, test.doc, got, test.want)
			}
		})
	}
}

// TestUnknownRaises holds what a rule does when its predicates are unknown to "as far as it raises".
func TestUnknownRaises(t *testing.T) {
	missing := arg("u", "eq", "1")
	for _, test := range []struct {
		name    string
		initial string
		rule    risk.Rule
		want    outcome
	}{
		{"set-higher", "safe", risk.Rule{SetMode: "danger"}, outcome{"danger", 90, "a!", "danger"}},
		{"set-the-same", "review", risk.Rule{SetMode: "review"}, outcome{"review", 50, "a!", "review"}},
		{"set-lower", "danger", risk.Rule{SetMode: "safe"}, outcome{"danger", 90, "a!?", "danger"}},
		{"escalate", "safe", risk.Rule{Escalate: true}, outcome{"review", 50, "a!", "review"}},
		{"escalate-at-the-top", "danger", risk.Rule{Escalate: true}, outcome{"danger", 90, "a!", "danger"}},
		{"set-lower-and-escalate", "danger", risk.Rule{SetMode: "safe", Escalate: true}, outcome{"danger", 90, "a!", "danger"}},
		{"set-lower-and-score", "danger", risk.Rule{SetMode: "safe", ScoreExpr: "95"}, outcome{"danger", 95, "a!", "danger"}},
		{"score-higher", "review", risk.Rule{ScoreExpr: "60"}, outcome{"review", 60, "a!", "review"}},
		{"score-lower", "review", risk.Rule{ScoreExpr: "6"}, outcome{"review", 50, "a!", "review"}},
		{"score-fails", "safe", risk.Rule{ScoreExpr: "args.n"}, outcome{"review", 1000, "a!", "review"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.rule.Args = missing
			a := compile(t, from(test.initial, content(test.rule))).Judge(fresh(`{}`))
			if got := outcomeOf(a); got != test.want {
				t.Errorf("Judge() = %+v, want %+v", got, test.want)
			}
		})
	}
	t.Run("a-lower-score-does-not-replace", func(t *testing.T) {
		m := compile(t, content(risk.Rule{ScoreExpr: "700"}, risk.Rule{Args: missing, ScoreExpr: "60"}))
		if got, want := outcomeOf(m.Judge(fresh(`{}`))), (outcome{"review", 700, "a b!", "review review"}); got != want {
			t.Errorf("Judge() = %+v, want %+v", got, want)
		}
	})
}
