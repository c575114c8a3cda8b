package policy_test

import (
	"bytes"
	"encoding/json" // the lenient decoder that others use: a plan must not mean two things
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/policy"
	"pgfsm/states/statestest"
)

const good = statestest.GoodPlan

func nested(depth int) string {
	return `{"type":"call_tool","server":"s","tool":"t","args":` + strings.Repeat(`{"a":`, depth-1) + "{}" + strings.Repeat("}", depth-1) + "}"
}

func TestReadPlanRefuses(t *testing.T) {
	answer := func(text string) string {
		return `{"type":"final_answer","answer":"` + text + `","needs_more_info":true}`
	}
	for _, tc := range []struct {
		name, plan string
		code       policy.Code
	}{
		{"empty", "", policy.CodePlanEmpty},
		{"white-space", " \n\t", policy.CodePlanEmpty},
		{"prose", "I will fetch the policy.", policy.CodePlanNotStrict},
		{"fence", "```json\n" + good + "\n```", policy.CodePlanNotStrict},
		{"text-before", "Here: " + good, policy.CodePlanNotStrict},
		{"text-behind", good + " done", policy.CodePlanNotStrict},
		{"two-objects", good + good, policy.CodePlanNotStrict},
		{"byte-order-mark", "\ufeff" + good, policy.CodePlanNotStrict},
		{"comment", "/* */" + good, policy.CodePlanNotStrict},
		{"trailing-comma", strings.Replace(good, "}}", "},}", 1), policy.CodePlanNotStrict},
		{"single-quotes", strings.ReplaceAll(good, `"`, `'`), policy.CodePlanNotStrict},
		{"cut-off", good[:len(good)-1], policy.CodePlanNotStrict},
		{"duplicate-tool", strings.Replace(good, `"tool":`, `"tool":"delete_policy_entry","tool":`, 1), policy.CodePlanNotStrict},
		{"duplicate-tool-escaped", strings.Replace(good, `"tool":`, `"t\u006fol":"delete_policy_entry","tool":`, 1), policy.CodePlanNotStrict},
		{"duplicate-in-args", strings.Replace(good, `{"policy_id"`, `{"policy_id":"policy-001","policy_id"`, 1), policy.CodePlanNotStrict},
		{"duplicate-deep-in-args", `{"type":"call_tool","server":"s","tool":"t","args":{"a":[{"b":{"c":1,"c":2}}]}}`, policy.CodePlanNotStrict},
		{"nan", `{"type":"call_tool","server":"s","tool":"t","args":{"n":NaN}}`, policy.CodePlanNotStrict},
		{"infinity", `{"type":"call_tool","server":"s","tool":"t","args":{"n":-Infinity}}`, policy.CodePlanNotStrict},
		{"lone-surrogate", `{"type":"call_tool","server":"s","tool":"t","args":{"s":"\ud800"}}`, policy.CodePlanNotStrict},
		{"invalid-utf8", "{\"type\":\"call_tool\",\"server\":\"s\",\"tool\":\"t\",\"args\":{\"s\":\"\xff\"}}", policy.CodePlanNotStrict},
		{"raw-control-character", "{\"type\":\"call_tool\",\"server\":\"s\",\"tool\":\"t\",\"args\":{\"s\":\"a\nb\"}}", policy.CodePlanNotStrict},
		{"leading-zero", `{"type":"call_tool","server":"s","tool":"t","args":{"n":01}}`, policy.CodePlanNotStrict},
		{"plus-sign", `{"type":"call_tool","server":"s","tool":"t","args":{"n":+1}}`, policy.CodePlanNotStrict},
		{"array", "[" + good + "]", policy.CodePlanNotStrict},
		{"string", `"call_tool"`, policy.CodePlanNotStrict},
		{"null", "null", policy.CodePlanNotStrict},
		{"depth-one-past-the-limit", nested(policy.DefaultJSONDepth), policy.CodePlanNotStrict},
		{"depth-bomb", strings.Repeat("[", 50_000), policy.CodePlanNotStrict},
		{"size-one-past-the-limit", good + strings.Repeat(" ", policy.DefaultPlanBytes+1-len(good)), policy.CodePlanTooLarge},
		{"no-type", `{"server":"s","tool":"t","args":{}}`, policy.CodePlanInvalid},
		{"type-is-null", `{"type":null,"server":"s","tool":"t","args":{}}`, policy.CodePlanInvalid},
		{"type-in-another-case", strings.Replace(good, "call_tool", "Call_Tool", 1), policy.CodePlanInvalid},
		{"name-in-another-case", strings.Replace(good, `"tool"`, `"Tool"`, 1), policy.CodePlanInvalid},
		{"name-in-two-cases", strings.Replace(good, `"tool"`, `"Tool":"x","tool"`, 1), policy.CodePlanInvalid},
		{"unknown-type", strings.Replace(good, "call_tool", "call_tools", 1), policy.CodePlanInvalid},
		{"unknown-member", strings.Replace(good, `"tool"`, `"approved":true,"tool"`, 1), policy.CodePlanInvalid},
		{"unknown-empty-member", strings.Replace(good, `"tool"`, `"":true,"tool"`, 1), policy.CodePlanInvalid},
		{"prototype-member", strings.Replace(good, `"tool"`, `"__proto__":{},"tool"`, 1), policy.CodePlanInvalid},
		{"tool-is-a-list", strings.Replace(good, `"fetch_policy_entry"`, `["fetch_policy_entry"]`, 1), policy.CodePlanInvalid},
		{"tool-is-empty", strings.Replace(good, `"fetch_policy_entry"`, `""`, 1), policy.CodePlanInvalid},
		{"server-is-a-number", strings.Replace(good, `"mcp-policy-kb"`, `7`, 1), policy.CodePlanInvalid},
		{"no-args", `{"type":"call_tool","server":"s","tool":"t"}`, policy.CodePlanInvalid},
		{"args-is-a-string", `{"type":"call_tool","server":"s","tool":"t","args":"{}"}`, policy.CodePlanInvalid},
		{"args-is-a-list", `{"type":"call_tool","server":"s","tool":"t","args":[]}`, policy.CodePlanInvalid},
		{"call-with-an-answer", strings.Replace(good, `"tool"`, `"answer":"x","tool"`, 1), policy.CodePlanInvalid},
		{"answer-that-claims", `{"type":"final_answer","answer":"Done.","needs_more_info":false}`, policy.CodeFinalAnswer},
		{"answer-without-the-flag", `{"type":"final_answer","answer":"Done."}`, policy.CodeFinalAnswer},
		{"flag-is-text", `{"type":"final_answer","answer":"Done.","needs_more_info":"true"}`, policy.CodeFinalAnswer},
		{"flag-is-one", `{"type":"final_answer","answer":"Done.","needs_more_info":1}`, policy.CodeFinalAnswer},
		{"answer-smuggles-a-tool", `{"type":"final_answer","answer":"a","needs_more_info":true,"tool":"t"}`, policy.CodeFinalAnswer},
		{"answer-is-blank", answer(` \t\u00a0 `), policy.CodeFinalAnswer},
		{"answer-shows-nothing", answer(`\u200b\u2800`), policy.CodeFinalAnswer},
		{"answer-is-a-list", `{"type":"final_answer","answer":["a"],"needs_more_info":true}`, policy.CodeFinalAnswer},
		{"answer-one-past-the-limit", answer(strings.Repeat("a", policy.MaxAnswerBytes+1)), policy.CodeFinalAnswer},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, v := policy.ReadPlan([]byte(tc.plan), policy.DefaultLimits())
			if p != nil || v.Allows() || !v.Blocks() || v.Code != tc.code || v.Gate != policy.GatePlan || v.Reason == "" {
				t.Errorf("ReadPlan(%.80s) = %v, %+v, want it blocked as %s", tc.plan, p, v, tc.code)
			}
		})
	}
}

func TestReadPlanAccepts(t *testing.T) {
	for _, tc := range []struct{ name, plan, canonical string }{
		{"call", good, `{"args":{"policy_id":"policy-002"},"server":"mcp-policy-kb","tool":"fetch_policy_entry","type":"call_tool"}`},
		{"white-space-around", "\n " + good + "\r\n", `{"args":{"policy_id":"policy-002"},"server":"mcp-policy-kb","tool":"fetch_policy_entry","type":"call_tool"}`},
		{
			"number-literals-stay", `{"type":"call_tool","server":"s","tool":"t","args":{"b":9007199254740993,"a":1.0,"c":-0,"d":1e400,"e":1E+2}}`,
			`{"args":{"a":1.0,"b":9007199254740993,"c":-0,"d":1e400,"e":1E+2},"server":"s","tool":"t","type":"call_tool"}`,
		},
		{
			"escapes-have-one-spelling", `{"t\u0079pe":"call_tool","server":"s","tool":"t","args":{"\u0061":"\u003c\/\ud83d\ude00\u0000"}}`,
			`{"args":{"a":"</😀\u0000"},"server":"s","tool":"t","type":"call_tool"}`,
		},
		{"question", `{"needs_more_info":true,"type":"final_answer","answer":"Which?"}`, `{"answer":"Which?","needs_more_info":true,"type":"final_answer"}`},
		{
			"answer-at-the-limit", `{"type":"final_answer","answer":"` + strings.Repeat("a", policy.MaxAnswerBytes) + `","needs_more_info":true}`,
			`{"answer":"` + strings.Repeat("a", policy.MaxAnswerBytes) + `","needs_more_info":true,"type":"final_answer"}`,
		},
		{"depth-at-the-limit", nested(policy.DefaultJSONDepth - 1), strings.Replace(nested(policy.DefaultJSONDepth-1), `"type":"call_tool","server":"s","tool":"t","args":`, `"args":`, 1)},
		{"size-at-the-limit", good + strings.Repeat(" ", policy.DefaultPlanBytes-len(good)), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, v := policy.ReadPlan([]byte(tc.plan), policy.DefaultLimits())
			if p == nil || !v.Allows() {
				t.Fatalf("ReadPlan(%.80s) = %+v, want it allowed", tc.plan, v)
			}
			want := tc.canonical
			if tc.name == "depth-at-the-limit" {
				want = want[:len(want)-1] + `,"server":"s","tool":"t","type":"call_tool"}`
			}
			if want != "" && string(p.Canonical()) != want {
				t.Errorf("Canonical() = %s, want %s", p.Canonical(), want)
			}
		})
	}
}

func TestPlanConstructorsMakePlansThatAreRead(t *testing.T) {
	for name, doc := range map[string][]byte{
		"call":     policy.CallPlan("s\"", "t\x00é", []byte(`{"a":[1,{"b":null}]}`)),
		"question": policy.QuestionPlan("Which \"one\"?\n"),
	} {
		p, v := policy.ReadPlan(doc, policy.DefaultLimits())
		if !v.Allows() || !bytes.Equal(p.Canonical(), doc) {
			t.Errorf("%s: ReadPlan(%s) = %+v, %+v; want it to be its own canonical form", name, doc, p, v)
		}
	}
}

// seeds are the plan corpus of the fuzz target: one file each.
func seeds(tb testing.TB) map[string][]byte {
	tb.Helper()
	all := map[string][]byte{}
	files, err := filepath.Glob("testdata/plans/*.json")
	if err != nil {
		tb.Fatal(err)
	}
	for _, file := range files {
		doc, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		all[filepath.Base(file)] = doc
	}
	if len(all) < 10 {
		tb.Fatalf("testdata/plans holds only %d plans", len(all))
	}
	return all
}

// FuzzReadPlan holds what is accepted to three promises: its canonical form is accepted as itself, a lenient decoder that
// takes the last of two names finds the same plan, and the arguments are exactly those of the canonical form.
func FuzzReadPlan(f *testing.F) {
	for _, doc := range seeds(f) {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		p, v := policy.ReadPlan(doc, policy.DefaultLimits())
		if (p == nil) == v.Allows() {
			t.Fatalf("ReadPlan(%q) = %v, %+v: a plan and a verdict that contradict each other", doc, p, v)
		}
		if p == nil {
			return
		}
		again, v := policy.ReadPlan(p.Canonical(), policy.DefaultLimits())
		if !v.Allows() || !bytes.Equal(again.Canonical(), p.Canonical()) {
			t.Fatalf("ReadPlan(canonical form of %q) = %+v", doc, v)
		}
		var lenient struct {
			Type, Server, Tool, Answer string
			Args                       json.RawMessage
		}
		if err := json.Unmarshal(doc, &lenient); err != nil {
			t.Fatalf("%q is strict but a lenient decoder refuses it: %v", doc, err)
		}
		got := fmt.Sprint(lenient.Type, lenient.Server, lenient.Tool, lenient.Answer)
		if want := fmt.Sprint(p.Type, p.Server, p.Tool, p.Answer); got != want {
			t.Fatalf("%q means %q to a lenient decoder and %q to us", doc, got, want)
		}
	})
}
