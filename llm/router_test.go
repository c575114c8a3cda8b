package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
)

func mustRouter(tb testing.TB, routes ...policy.Route) *Router {
	tb.Helper()
	r, err := NewRouter(routes, nil)
	check.NoError(tb, err)
	return r
}

// one is a route of the server s to the tool t.
func one(id, pattern, args string) policy.Route {
	return policy.Route{ID: id, Pattern: pattern, Server: "s", Tool: "t", Args: jsontext.Value(args)}
}

// planOf is the plan of a router without a model.
func planOf(tb testing.TB, r *Router, request string, allowed []Tool) []byte {
	tb.Helper()
	got, err := r.Plan(tb.Context(), request, allowed)
	check.NoError(tb, err)
	return got.Content
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
			got := planOf(t, mustRouter(t, tt.routes...), tt.request, []Tool{{Server: "s", Name: "t"}})
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
		{"what-does-not-fit-is-cut", "hello", many, []string{"tool_0 (server-é), tool_1 ", "…"}},
		{"one-name-longer-than-the-answer", "hello", []Tool{{Server: "s", Name: strings.Repeat("é", 1000)}},
			[]string{"éé…"}},
		{"name-not-utf8", "hello", []Tool{{Server: "s", Name: "a\xffb"}}, []string{"a\uFFFDb (s)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc := planOf(t, mustRouter(t), tt.request, tt.allowed)
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

// TestNewRouterRefuses: the configuration has checked the routes, and the router compiles none that it cannot use.
func TestNewRouterRefuses(t *testing.T) {
	for _, tt := range []struct {
		name  string
		route policy.Route
		want  []string
	}{
		{"pattern-not-re2", one("a", `(?=x)`, "{}"), []string{`"a"`, "pattern:"}},
		{"args-an-array", one("a", "x", `[]`), []string{`"a"`, "args must be a JSON object"}},
		{"args-with-a-duplicate-name", one("a", "x", `{"a":1,"a":2}`), []string{`"a"`, "args: not strict JSON"}},
		{"unknown-number", one("a", "(x)", `{"k":["${2}"]}`), []string{`"a"`, "/k/0", "${2}"}},
		{"unknown-name", one("a", "(?P<b>x)", `{"k":"${c}"}`), []string{`"a"`, "/k", "${c}"}},
		{"no-name", one("a", "(x)", `{"k":"${}"}`), []string{`"a"`, "/k", "${}"}},
		{"never-closed", one("a", "(x)", `{"k":"${1"}`), []string{`"a"`, "/k", "never closed"}},
		{"group-in-a-name", one("a", "(x)", `{"k":{"${1}":1}}`), []string{`"a"`, "member's name"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := NewRouter([]policy.Route{one("good", "x", "{}"), tt.route}, nil)
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

// answering is a planner with one answer.
type answering struct {
	text string
	err  error
}

func (a answering) Plan(context.Context, string, []Tool) (Completion, error) {
	return Completion{Content: []byte(a.text)}, a.err
}

// TestRoutesGoFirst: a route that matches never reaches the model, and any other request does.
func TestRoutesGoFirst(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name, request string
		model         Planner
		want          string
		err           error
	}{
		{"route-matches", "policy-2", answering{err: broken}, call(`{"n":"2"}`), nil},
		{"no-route", "hello", answering{text: "model"}, "model", nil},
		{"no-route-model-fails", "hello", answering{err: broken}, "", broken},
		{"not-utf8", "policy-2\xff", answering{text: "model"}, "model", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			router, err := NewRouter([]policy.Route{one("id", `policy-(\d+)`, `{"n":"${1}"}`)}, tt.model)
			check.NoError(t, err)
			got, err := router.Plan(t.Context(), tt.request, nil)
			if !errors.Is(err, tt.err) || string(got.Content) != tt.want {
				t.Errorf("Plan(%q) = %s, %v, want %s, %v", tt.request, got.Content, err, tt.want, tt.err)
			}
		})
	}
}

// TestCancelled: neither the router nor the extractive summarizer works for a caller who is gone.
func TestCancelled(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := mustRouter(t).Plan(done, "x", nil); !errors.Is(err, context.Canceled) || got.Content != nil {
		t.Errorf("Plan = %s, %v, want that it was cancelled", got.Content, err)
	}
	if got, err := (Extractive{}).Summarize(done, "x", []byte(`{}`)); !errors.Is(err, context.Canceled) || got.Content != nil {
		t.Errorf("Summarize = %s, %v, want that it was cancelled", got.Content, err)
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
		plan := checkPlan(t, planOf(t, router, request, []Tool{{Server: server, Name: tool}}))
		if plan.Type != policy.PlanCallTool {
			return
		}
		var names []string
		dec := jsontext.NewDecoder(strings.NewReader(string(plan.Args.Bytes())))
		for tok, err := dec.ReadToken(); err == nil; tok, err = dec.ReadToken() {
			if tok.Kind() == '"' && canonical.IsName(dec) {
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
