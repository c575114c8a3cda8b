package ctrl_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-json-experiment/json"

	"pgfsm/policy/ctrl"
)

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// withExpression puts an expression into a bundle; where is deny, vars, score_expr or danger.
func withExpression(where, expression string) fstest.MapFS {
	at := map[string]string{"deny": "'False'", "vars": "'1'", "score_expr": "'1'", "danger": "'score >= 90'"}
	at[where] = quoted(expression)
	return bundle(
		fmt.Sprintf("policies:\n- {id: p, match: {server: s}, effect: allow, deny: %s}\n", at["deny"]),
		fmt.Sprintf(`risk:
  modes: {safe: {score: 0}, review: {score: 50}, danger: {score: 90}}
  vars: {before: '2', n: %s, later: '3'}
  rules: [{name: r, when: {tool: t}, score_expr: %s}]
  set_mode_by_score: {danger: %s}
`, at["vars"], at["score_expr"], at["danger"]))
}

func bundle(policy, risk string) fstest.MapFS {
	files := fstest.MapFS{ctrl.PolicyFile: {Data: []byte(policy)}}
	if risk != "" {
		files[ctrl.RiskFile] = &fstest.MapFile{Data: []byte(risk)}
	}
	return files
}

// translated returns what became of the expression, and the codes that were found of it.
func translated(t *testing.T, where, expression string) (cel string, codes []string) {
	t.Helper()
	r, err := ctrl.Import(withExpression(where, expression))
	if err != nil {
		t.Fatal(err)
	}
	key := where
	switch where {
	case "deny":
		cel = r.Policy.Policies[0].Deny
	case "vars":
		if r.Risk.Vars[1].Name == "n" {
			cel = r.Risk.Vars[1].Expr
		}
	case "score_expr":
		cel = r.Risk.Rules[0].ScoreExpr
	case "danger":
		cel, key = r.Risk.ModeByScore[0].When, "set_mode_by_score"
	}
	for _, f := range r.Findings {
		if f.Key == key && !slices.Contains(codes, f.Code) {
			codes = append(codes, f.Code)
		}
	}
	checkWritten(t, r)
	return cel, codes
}

func TestExpressions(t *testing.T) {
	tests := []struct{ where, python, cel, codes string }{
		{"deny", "risk.mode in ['review']", "risk.mode in ['review']", "more_risk_is_milder"},
		{"deny", "risk.mode not in ('a', \"b\")", "!(risk.mode in ['a', 'b'])", ""},
		{"deny", "risk_mode == 'danger' or risk_score >= 80", "risk.mode == 'danger' || risk.score >= 80", ""},
		{"deny", "not risk.score < 80 and True", "!(risk.score < 80) && true", ""},
		{"deny", "(risk.score >= 80 or False) and True", "(risk.score >= 80 || false) && true", ""},
		{"deny", "50 <= risk.score < 90", "50 <= risk.score && risk.score < 90", "more_risk_is_milder"},
		{"deny", "not 1 < risk.score < 2 <= 3 and True",
			"!(1 < risk.score && risk.score < 2 && 2 <= 3) && true", ""},
		{"deny", "risk.score == 100", "math.least(risk.score, 100) == 100", ""},
		{"deny", "risk.score == 99", "risk.score == 99", ""},
		{"deny", "risk.score <= 100", "math.least(risk.score, 100) <= 100", ""},
		{"deny", "100 < risk.score", "100 < math.least(risk.score, 100)", ""},
		{"deny", "risk.score > 80.5", "risk.score > 80.5", ""},
		{"deny", "risk.score == 80.5", "double(risk.score) == 80.5", ""},
		{"deny", "risk.score in [100]", "math.least(risk.score, 100) in [100]", ""},
		{"deny", "risk.mode == 'it\\'s'", `risk.mode == 'it\'s'`, ""},
		{"deny", "env == 'prod'", "env == 'prod'", ctrl.AlwaysFailed},
		{"deny", "args.get('amount', 0) > 1000", "(has(args.amount) ? args.amount : 0) > 1000", "always_failed wrong_type"},
		{"deny", "args['my-key'] == None", "args['my-key'] == null", "always_failed wrong_type"},
		{"deny", "args.get('in', 0) == 1", "('in' in args ? args['in'] : 0) == 1", "always_failed wrong_type"},
		{"deny", "args.get('force')", "(has(args.force) ? args.force : null) ? true : false",
			"always_failed wrong_type truth"},
		{"deny", "tool.lower().startswith('del')", "tool.lowerAscii().startsWith('del')", "always_failed rounding"},
		{"deny", "len(args.get('s', '')) > 3", "size(has(args.s) ? args.s : '') > 3", "always_failed wrong_type"},
		{"deny", "sqrt(9)", "math.sqrt(9.0) != 0.0", ""},
		{"score_expr", "max(score, 70 + min(n or 0, 100)/4)",
			"math.greatest(score, 70.0 + math.least(vars.n, 100.0) / 4.0)", "shadowed_name division"},
		{"score_expr", "10 + 80*(env=='prod')", "10.0 + 80.0 * (env == 'prod' ? 1.0 : 0.0)", ctrl.ShadowedName},
		{"score_expr", "min(amount or 0, 5)", "math.least(-double(-(args.amount != null ? args.amount : 0)), 5.0)",
			"shadowed_name wrong_type"},
		{"score_expr", "(args.get('amount', 0) or 0) / 1000",
			"-double(-(has(args.amount) && args.amount != null ? args.amount : 0)) / 1000.0",
			"always_failed wrong_type division"},
		{"score_expr", "args.get('a', 3) or 3", "-double(-(has(args.a) && args.a != null && args.a != 0 && " +
			"args.a != '' && args.a != false ? args.a : 3))", "always_failed wrong_type"},
		{"score_expr", "n or 7", "vars.n != 0.0 ? vars.n : 7.0", ""},
		{"score_expr", "60 if hour > 18 else 0", "double(args.hour > 18 ? 60 : 0)", "always_failed wrong_type"},
		{"score_expr", "(1 - (2 - 3)) - -4", "1.0 - (2.0 - 3.0) - -4.0", ""},
		{"score_expr", "7 // 2", "math.floor(7.0 / 2.0)", "always_failed division"},
		{"score_expr", "abs(-2) + round(2.5) + floor(1.5) + ceil(0.5) + sqrt(4)",
			"math.abs(-2.0) + math.round(2.5) + math.floor(1.5) + math.ceil(0.5) + math.sqrt(4.0)", "shadowed_name rounding"},
		{"score_expr", "int('4') + float(n) + len([1])", "double(int('4')) + double(vars.n) + double(size([1]))",
			ctrl.AlwaysFailed},
		{"score_expr", "90 * ('x' in name)", "90.0 * ((type(args.name) == string ? args.name.contains('x') : " +
			"'x' in args.name) " +
			"? 1.0 : 0.0)", "wrong_type text_case"},
		{"score_expr", "80 * (str(n2).endswith('5'))", "80.0 * (string(args.n2).endsWith('5') ? 1.0 : 0.0)",
			"always_failed wrong_type rounding"},
		{"vars", "before * 2", "vars.before * 2.0", ""},
		{"vars", "min(n, 100)", "math.least(-double(-args.n), 100.0)", "shadowed_name wrong_type failing_var"},
		{"vars", "rows / 1000", "-double(-args.rows) / 1000.0", "wrong_type failing_var division"},
		{"vars", "(args.get('amount', 0) or 0) / 1000",
			"-double(-(has(args.amount) && args.amount != null ? args.amount : 0)) / 1000.0",
			"failing_var wrong_type division"},
		{"danger", "score >= 85", "score >= 85", ""},
		{"danger", "90 <= score <= 100", "90 <= score && math.least(score, 100.0) <= 100", ""},
		{"danger", "score == 100.0", "math.least(score, 100.0) == 100.0", ""},
	}
	for _, tt := range tests {
		cel, codes := translated(t, tt.where, tt.python)
		if cel != tt.cel || strings.Join(codes, " ") != tt.codes {
			t.Errorf("%s: %s = %s\n     want %s\n  codes %q, want %q", tt.where, tt.python, cel, tt.cel, codes, tt.codes)
		}
	}
}

// What is not known is refused, and what stands in for it is strictest.
func TestRefused(t *testing.T) {
	strictest := map[string]string{"deny": "true", "score_expr": "1000.0", "vars": "", "danger": "true"}
	deep := "1"
	for range 200 {
		deep = "1 < (" + deep + ") < 1"
	}
	doubled := "n * 2"
	for range 60 {
		doubled = "(" + doubled + " or 1) * 2"
	}
	everywhere := []string{
		"9**9**9", "2 ** 3", "n.real", "args.amount", "args.keys()", "args.get(name)", "args.get('a', b=1)", "max(*[1, 2])",
		"unknown(1)", "max(1)", "log(2)", "round(1, 2)", "__import__('os')", "lambda: 1", "[x for x in [1]]", "{'a': 1}",
		"1 %% 2 ==", "1 % 2", "1 & 2", "~1", "'a' * 1000000000", "x is None", "f'{n}'", "b'x' == 1", "'a' 'b' == 1",
		"1 if True", "args", "risk", "None + 1", "-'a'", "'a' + 1", "'a' < 1", "1 == 'a'", "None < 1", "1 in 'a'", "1 in 2",
		"'x' in [1]", "[1] == [1]", "1e400", "9007199254740993 + 1", "99999999999999999999", "args[0]", "args['a'][0]",
		"args.get('a', {}).get('b', 1)", "tool.upper()", "tool.lower(1)", "tool.startswith(('a', 'b'))", "len(1)", "str(1)",
		"int(True)", "len(1, 2)", "n and 1 if 2", "ctrl_chain_link < 1", "1 < ctrl_chain_link", "tool or 'x'", "(1 < 2",
		"score.real", "args.get('a', 1) or 2", deep, doubled, strings.Repeat("(", 3000) + "1", strings.Repeat("1+",
			2040) + "1",
		strings.Repeat("not ", 1020) + "1", strings.Repeat("1 < ", 40) + "2", "a\x00b", "1;2", "a = 1", "*",
		"\"\\xff\" == 'a'",
		"print('x')", "min()", "max([1, 2])", "True < False", "risk.rules", "risk.score.x", "mode == 'danger'", "mode",
	}
	only := map[string][]string{
		"deny":       {"amount > 1", "n > 1", "score > 1", "vars.n"},
		"score_expr": {"risk.score", "risk_score()", "[1]", "'a'", "None"},
		"vars":       {"score", "max(later, 1)"},
		"danger":     {"n > 1", "env == 'prod'", "args.get('a', 1) > 1", "score in [1]", "score >= 90 and amount > 1"},
	}
	for _, where := range []string{"deny", "score_expr", "vars", "danger"} {
		for _, expression := range append(slices.Clone(everywhere), only[where]...) {
			cel, codes := translated(t, where, expression)
			if cel != strictest[where] || !slices.Equal(codes, []string{ctrl.Refused}) {
				t.Errorf("%s: %.80s = %.200s, %q, want %q, refused", where, expression, cel, codes, strictest[where])
			}
		}
	}
}

// A chain of as many links as are read, and one more.
func TestLinksOfAChain(t *testing.T) {
	for links, ok := range map[int]bool{32: true, 33: false} {
		cel, _ := translated(t, "deny", strings.Repeat("1 < ", links+1)+"2")
		if got := cel != "true"; got != ok {
			t.Errorf("a chain with %d links more than one = %.60s, want translated %t", links, cel, ok)
		}
	}
}

func TestAnExpressionOfMaxSize(t *testing.T) {
	for size, ok := range map[int]bool{4096: true, 4097: false} {
		expression := "risk.mode == '" + strings.Repeat("x", size-len("risk.mode == ''")) + "'"
		cel, _ := translated(t, "deny", expression)
		if got := cel != "true"; got != ok {
			t.Errorf("%d bytes = %.60s, want translated %t", size, cel, ok)
		}
	}
}
