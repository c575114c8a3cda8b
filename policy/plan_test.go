package policy_test

import (
	"bytes"
	"encoding/json" // the lenient decoder that others use: a plan must not mean two things
	"fmt"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/corpus"
	"pgfsm/states/statestest"
)

const good = statestest.GoodPlan

func nested(depth int) string {
	return `{"type":"call_tool","server":"s","tool":"t","args":` + strings.Repeat(`{"a":`, depth-1) + "{}" + strings.Repeat("}", depth-1) + "}"
}

// TestReadPlan reads every output of the corpus.
func TestReadPlan(t *testing.T) {
	for _, c := range plans(t) {
		t.Run(c.ID, func(t *testing.T) {
			text := c.Bytes()
			p, v := policy.ReadPlan(text, policy.DefaultLimits())
			switch {
			case v.Allows() && (p == nil || p.Type != c.Want):
				t.Errorf("ReadPlan(%.80q) = %v, want %s", text, p, c.Want)
			case !v.Allows() && (p != nil || !v.Blocks() || string(v.Code) != c.Want || v.Gate != policy.GatePlan || v.Reason == ""):
				t.Errorf("ReadPlan(%.80q) = %v, %+v, want %s", text, p, v, c.Want)
			}
		})
	}
}

func plans(tb testing.TB) []corpus.Case {
	tb.Helper()
	all, err := corpus.Load[corpus.Case]("plans")
	check.NoError(tb, err)
	return all
}

func TestReadPlanAccepts(t *testing.T) {
	for _, tc := range []struct{ name, plan, canonical string }{
		{"call", good, `{"args":{"policy_id":"policy-002"},"server":"mcp-policy-kb","tool":"fetch_policy_entry","type":"call_tool"}`},
		{
			"number-literals-stay", `{"type":"call_tool","server":"s","tool":"t","args":{"b":9007199254740993,"a":1.0,"c":-0,"d":1e400,"e":1E+2}}`,
			`{"args":{"a":1.0,"b":9007199254740993,"c":-0,"d":1e400,"e":1E+2},"server":"s","tool":"t","type":"call_tool"}`,
		},
		{
			"escapes-have-one-spelling", `{"t\u0079pe":"call_tool","server":"s","tool":"t","args":{"\u0061":"\u003c\/\ud83d\ude00\u0000"}}`,
			`{"args":{"a":"</😀\u0000"},"server":"s","tool":"t","type":"call_tool"}`,
		},
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

// FuzzReadPlan holds what is accepted to three promises: its canonical form is accepted as itself, a lenient decoder that
// takes the last of two names finds the same plan, and the arguments are exactly those of the canonical form.
func FuzzReadPlan(f *testing.F) {
	for _, c := range plans(f) {
		f.Add(c.Bytes())
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
