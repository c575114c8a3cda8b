package llm

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy"
)

func mustRouter(tb testing.TB, routes ...policy.Route) *Router {
	tb.Helper()
	r, err := NewRouter(routes)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// one is a route of the server s to the tool t.
func one(id, pattern, args string) policy.Route {
	return policy.Route{ID: id, Pattern: pattern, Server: "s", Tool: "t", Args: jsontext.Value(args)}
}

func call(args string) string {
	return `{"args":` + args + `,"server":"s","tool":"t","type":"call_tool"}`
}

const noRoute = "(final_answer)"

func TestPlan(t *testing.T) {
	id := one("id", `(?i)\b(policy-\d+)\b`, `{"policy_id":"${1}"}`)
	word := one("word", `find (.*)`, `{"query":"${1}"}`)
	for _, tt := range []struct {
		name    string
		routes  []policy.Route
		request string
		want    string
	}{
		{"group-by-number", []policy.Route{id}, "Summarize policy policy-002", call(`{"policy_id":"policy-002"}`)},
		{"request-as-written", []policy.Route{id}, "POLICY-002", call(`{"policy_id":"POLICY-002"}`)},
		{"pattern-decides-case", []policy.Route{one("a", `policy`, `{}`)}, "Policy", noRoute},
		{"group-by-name", []policy.Route{one("a", `(?P<id>\d+)`, `{"a":"${id}"}`)}, "see 12", call(`{"a":"12"}`)},
		{"whole-match", []policy.Route{one("a", `\d+`, `{"a":"${0}"}`)}, "see 12", call(`{"a":"12"}`)},
		{"group-inside-text", []policy.Route{one("a", `(\d)(\d)`, `{"a":"<${2}-${1}>"}`)}, "12", call(`{"a":"<2-1>"}`)},
		{"first-route-wins", []policy.Route{one("a", `x`, `{"n":1}`), one("b", `x`, `{"n":2}`)}, "x", call(`{"n":1}`)},
		{"second-route-when-the-first-does-not-match", []policy.Route{id, word}, "find x", call(`{"query":"x"}`)},
		{"no-route", []policy.Route{id, word}, "hello", noRoute},
		{"no-routes-at-all", nil, "policy-002", noRoute},
		{"absent-args-are-an-empty-object", []policy.Route{one("a", `x`, ``)}, "x", call(`{}`)},
		{"args-without-groups-stay", []policy.Route{one("a", `x`, `{"b":[1.0,true,null],"a":"$1 $"}`)}, "x",
			call(`{"a":"$1 $","b":[1.0,true,null]}`)},
		{"number-literals-stay", []policy.Route{one("a", `x`, `{"n":9007199254740993}`)}, "x",
			call(`{"n":9007199254740993}`)},
		{"any-depth", []policy.Route{one("a", `(x)`, `{"a":[{"b":["${1}",{"c":"${1}"}]}],"d":"${1}"}`)}, "x",
			call(`{"a":[{"b":["x",{"c":"x"}]}],"d":"x"}`)},
		{"escape", []policy.Route{one("a", `(x)`, `{"a":"$${1}${1}$${"}`)}, "x", call(`{"a":"${1}x${"}`)},
		{"placeholder-spelled-with-json-escapes", []policy.Route{one("a", `(x)`, `{"a":"\u0024\u007b1}\n"}`)}, "x",
			call(`{"a":"x\n"}`)},
		{"group-that-closes-the-string", []policy.Route{word}, `find ","admin":"true`,
			call(`{"query":"\",\"admin\":\"true"}`)},
		{"group-that-ends-in-a-backslash", []policy.Route{word}, `find \`, call(`{"query":"\\"}`)},
		{"group-with-control-characters", []policy.Route{one("a", `(?s)find (.*)`, `{"q":"${1}"}`)}, "find \n\x00\u2028",
			call(`{"q":"\n\u0000` + "\u2028" + `"}`)},
		{"group-that-looks-like-a-group", []policy.Route{word}, "find ${1}$${0}", call(`{"query":"${1}$${0}"}`)},
		{"group-took-no-part", []policy.Route{one("a", `x(y)?`, `{"a":"${1}"}`)}, "x", noRoute},
		{"group-matched-nothing", []policy.Route{word}, "find ", noRoute},
		{"empty-group-in-text", []policy.Route{one("a", `x(y)?`, `{"a":"k${1}"}`)}, "x", noRoute},
		{"next-route-when-a-group-is-empty", []policy.Route{one("a", `x(y)?`, `{"a":"${1}"}`), one("b", `x`, `{}`)}, "x",
			call(`{}`)},
		{"unused-group-took-no-part", []policy.Route{one("a", `(x)(y)?`, `{"a":"${1}"}`)}, "x", call(`{"a":"x"}`)},
		{"only-the-first-place-counts", []policy.Route{one("a", `find(\d*)`, `{"a":"${1}"}`)}, "find find7", noRoute},
		{"request-not-utf8", []policy.Route{one("a", `(?s)find (.*)`, `{"a":"${1}"}`)}, "find \xff", noRoute},
		{"tool-that-is-not-allowed-is-still-planned",
			[]policy.Route{{ID: "d", Pattern: "delete", Server: "x", Tool: "delete_doc"}}, "delete it",
			`{"args":{},"server":"x","tool":"delete_doc","type":"call_tool"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := mustRouter(t, tt.routes...).Plan(tt.request, []Tool{{Server: "s", Name: "t"}})
			plan, verdict := policy.ReadPlan(got, policy.DefaultLimits())
			if !verdict.Allows() {
				t.Fatalf("Plan(%q) = %s, which the plan gate refuses: %s", tt.request, got, verdict.Reason)
			}
			if tt.want == noRoute && plan.Type == policy.PlanFinalAnswer {
				return
			}
			if string(got) != tt.want {
				t.Errorf("Plan(%q) = %s, want %s", tt.request, got, tt.want)
			}
		})
	}
}

func TestPlanAsks(t *testing.T) {
	many := make([]Tool, 300)
	for i := range many {
		many[i] = Tool{Server: "server-é", Name: fmt.Sprintf("tool_%d", i)}
	}
	for _, tt := range []struct {
		name    string
		request string
		allowed []Tool
		holds   []string
	}{
		{"names-the-tools-in-their-order", "hello", []Tool{{Server: "kb", Name: "z"}, {Server: "kb", Name: "a"}},
			[]string{"No route", "z (kb), a (kb)."}},
		{"no-tool-can-be-called", "hello", nil, []string{"No route", "No tool can be called"}},
		{"request-not-utf8", "\xff", []Tool{{Server: "kb", Name: "a"}}, []string{"not UTF-8", "a (kb)."}},
		{"counts-what-does-not-fit", "hello", many, []string{"tool_0 (server-é), tool_1 ", " more."}},
		{"one-name-longer-than-the-answer", "hello", []Tool{{Server: "s", Name: strings.Repeat("é", 1000)}},
			[]string{"éé…"}},
		{"the-name-is-cut-at-a-rune", "hello", []Tool{{Server: "s", Name: "x" + strings.Repeat("é", 1000)}},
			[]string{"éé…"}},
		{"name-not-utf8", "hello", []Tool{{Server: "s", Name: "a\xffb"}}, []string{"a\uFFFDb (s)"}},
		{"long-name-after-a-short-one", "hello",
			[]Tool{{Server: "s", Name: "a"}, {Server: "s", Name: strings.Repeat("b", 1000)}},
			[]string{"a (s) and 1 more."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc := mustRouter(t).Plan(tt.request, tt.allowed)
			plan, verdict := policy.ReadPlan(doc, policy.DefaultLimits())
			if !verdict.Allows() {
				t.Fatalf("Plan = %s, which the plan gate refuses: %s", doc, verdict.Reason)
			}
			if len(plan.Answer) > policy.MaxAnswerBytes || !utf8.ValidString(plan.Answer) {
				t.Errorf("the answer has %d bytes, want at most %d of UTF-8", len(plan.Answer), policy.MaxAnswerBytes)
			}
			for _, part := range tt.holds {
				if !strings.Contains(plan.Answer, part) {
					t.Errorf("answer = %q, want it to hold %q", plan.Answer, part)
				}
			}
		})
	}
}

func TestNewRouterRefuses(t *testing.T) {
	tooMany := make([]policy.Route, policy.MaxRoutes+1)
	for i := range tooMany {
		tooMany[i] = one(fmt.Sprint(i), "x", "{}")
	}
	if _, err := NewRouter(tooMany[1:]); err != nil {
		t.Errorf("NewRouter(%d routes) = %v, want nil", policy.MaxRoutes, err)
	}
	long := strings.Repeat("x", MaxPatternBytes)
	mustRouter(t, one("at-the-limit", long, "{}"))
	for _, tt := range []struct {
		name   string
		routes []policy.Route
		want   []string
	}{
		{"one-route-too-many", tooMany, []string{"257 routes"}},
		{"empty-id", []policy.Route{one("", "x", "{}")}, []string{`route 0 ("")`, "id is empty"}},
		{"repeated-id", []policy.Route{one("a", "x", "{}"), one("a", "y", "{}")},
			[]string{`route 1 ("a")`, "route 0 has the same"}},
		{"empty-pattern", []policy.Route{one("a", "", "{}")}, []string{`route 0 ("a")`, "pattern is empty"}},
		{"pattern-one-byte-too-long", []policy.Route{one("a", long+"x", "{}")}, []string{`("a")`, "4097 bytes"}},
		{"pattern-not-re2", []policy.Route{one("a", `(?=x)`, "{}")}, []string{`("a")`, "pattern:"}},
		{"no-server", []policy.Route{{ID: "a", Pattern: "x", Tool: "t"}}, []string{`("a")`, "server is empty"}},
		{"no-tool", []policy.Route{{ID: "a", Pattern: "x", Server: "s"}}, []string{`("a")`, "tool is empty"}},
		{"server-not-utf8", []policy.Route{{ID: "a", Pattern: "x", Server: "\xff", Tool: "t"}},
			[]string{`("a")`, "not UTF-8"}},
		{"args-an-array", []policy.Route{one("a", "x", `[]`)}, []string{`("a")`, "args must be a JSON object"}},
		{"args-null", []policy.Route{one("a", "x", `null`)}, []string{`("a")`, "args must be a JSON object"}},
		{"args-not-json", []policy.Route{one("a", "x", `{"a":}`)}, []string{`("a")`, "args: not strict JSON"}},
		{"args-with-a-duplicate-name", []policy.Route{one("a", "x", `{"a":1,"a":2}`)},
			[]string{`("a")`, "args: not strict JSON"}},
		{"args-with-text-behind", []policy.Route{one("a", "x", `{} {}`)}, []string{`("a")`, "args:"}},
		{"unknown-number", []policy.Route{one("a", "(x)", `{"k":["${2}"]}`)}, []string{`("a")`, "/k/0", "${2}", "1 groups"}},
		{"unknown-name", []policy.Route{one("a", "(?P<b>x)", `{"k":"${c}"}`)}, []string{`("a")`, "/k", "${c}"}},
		{"no-name", []policy.Route{one("a", "(x)", `{"k":"${}"}`)}, []string{`("a")`, "/k", "${}"}},
		{"signed-number", []policy.Route{one("a", "(x)", `{"k":"${-1}"}`)}, []string{`("a")`, "${-1}"}},
		{"never-closed", []policy.Route{one("a", "(x)", `{"k":"${1"}`)}, []string{`("a")`, "/k", "never closed"}},
		{"group-in-a-name", []policy.Route{one("a", "(x)", `{"k":{"${1}":1}}`)}, []string{`("a")`, "member's name"}},
		{"all-mistakes-at-once", []policy.Route{one("a", "(", "{}"), one("b", "x", "{}"), one("c", "x", "1")},
			[]string{`route 0 ("a")`, `route 2 ("c")`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := NewRouter(tt.routes)
			if err == nil || r != nil {
				t.Fatalf("NewRouter = %v, %v, want nil and an error", r, err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("NewRouter error = %q, want it to hold %q", err, part)
				}
			}
		})
	}
}

// checkPlan fails unless doc is a plan that the plan gate accepts and that is in canonical form.
func checkPlan(t *testing.T, doc []byte) *policy.Plan {
	t.Helper()
	limits := policy.DefaultLimits()
	limits.PlanBytes, limits.JSONDepth = max(len(doc), limits.PlanBytes), policy.MaxJSONDepth
	plan, verdict := policy.ReadPlan(doc, limits)
	if !verdict.Allows() {
		t.Fatalf("plan %q is refused: %s", doc, verdict.Reason)
	}
	if canonical := plan.Canonical(); string(canonical) != string(doc) {
		t.Fatalf("plan %q is not canonical: %q", doc, canonical)
	}
	return plan
}

// FuzzRouter feeds requests: whatever they hold, the output is one strict plan of the operator's shape.
func FuzzRouter(f *testing.F) {
	router := mustRouter(f,
		one("id", `(?i)\b(policy-\d+)\b`, `{"policy_id":"${1}"}`),
		one("all", `(?s)find(?P<mode> all)? (.+)`, `{"q":{"deep":["${2}","=${2}="]},"n":1}`),
		one("mode", `(?s)find(?P<mode> all)`, `{"mode":"${mode}"}`))
	f.Fuzz(func(t *testing.T, request, server, tool string) {
		plan := checkPlan(t, router.Plan(request, []Tool{{Server: server, Name: tool}}))
		if plan.Type != policy.PlanCallTool {
			return
		}
		var names []string
		dec := jsontext.NewDecoder(strings.NewReader(string(plan.Args)))
		for tok, err := dec.ReadToken(); err == nil; tok, err = dec.ReadToken() {
			if tok.Kind() == '"' && isName(dec) {
				names = append(names, tok.String())
			}
		}
		switch got := strings.Join(names, " "); got {
		case "policy_id", "n q deep", "mode":
		default:
			t.Errorf("Plan(%q) has the members %q: the request wrote JSON", request, got)
		}
	})
}

// FuzzRouteArgs feeds whole routes: one that compiles gives strict plans.
func FuzzRouteArgs(f *testing.F) {
	f.Fuzz(func(t *testing.T, pattern, args, request string) {
		router, err := NewRouter([]policy.Route{one("a", pattern, args)})
		if err != nil {
			return
		}
		if strings.Count(args, "[")+strings.Count(args, "{") > policy.MaxJSONDepth-2 {
			return // the plan gate refuses it for its depth
		}
		checkPlan(t, router.Plan(request, nil))
	})
}
