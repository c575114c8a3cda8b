package policy_test

import (
	"strings"
	"testing"

	"pgfsm/policy"
	"pgfsm/states/statestest"
)

func TestCompileRefuses(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*policy.Content)
		says   string
	}{
		{"another-format", func(c *policy.Content) { c.Format = "pgfsm.bundle/v2" }, "bundle format"},
		{"no-plan-limit", func(c *policy.Content) { c.Limits.PlanBytes = 0 }, "limits.plan_bytes is 0"},
		{"result-limit-one-past", func(c *policy.Content) { c.Limits.ResultBytes = policy.MaxResultBytes + 1 }, "limits.result_bytes"},
		{"time-one-past", func(c *policy.Content) { c.Limits.RunTimeout = policy.MaxRunTimeout + 1 }, "limits.run_timeout"},
		{"no-input-limit", func(c *policy.Content) { c.Input.MaxBytes = 0 }, "input.max_bytes"},
		{"broken-rule", func(c *policy.Content) { c.Input.Rules[0].Pattern = "(" }, "malware"},
		{"rule-for-no-kind", func(c *policy.Content) { c.Input.Rules[0].On = nil }, "on has the kinds"},
		{"rule-for-an-unknown-kind", func(c *policy.Content) { c.Input.Rules[0].On = []string{"ask", "aks"} }, "on has the kinds"},
		{"broken-output-type", func(c *policy.Content) { c.Outputs[0].Schema = []byte(`{"$ref":"#"}`) }, "output type of"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			content := statestest.Content()
			tc.change(&content)
			if _, err := policy.Compile(content); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Compile() = %v, want an error that says %q", err, tc.says)
			}
		})
	}
}

// TestZeroValuesDeny shows that whatever was never set says no.
func TestZeroValuesDeny(t *testing.T) {
	for name, v := range map[string]policy.Verdict{
		"zero-verdict":             {},
		"unknown-outcome":          {Outcome: "Allow"},
		"zero-bundle-lists":        new(policy.Bundle).Listed(&policy.Tool{Server: "s", Name: "t", Allowed: true}, nil),
		"zero-bundle-screens":      new(policy.Bundle).Screen("hello"),
		"zero-bundle-screens-call": new(policy.Bundle).ScreenCall(policy.KindAgent, []byte(statestest.GoodPlan), nil),
		"zero-bundle-decides":      new(policy.Bundle).Decide(policy.Question{}).Verdict,
		"no-tool":                  new(policy.Bundle).Authorize(nil, nil, "", nil, nil),
		"no-catalog":               second(new(policy.Bundle).Validate(nil, nil, nil)),
		"no-output-type":           new(policy.Bundle).Typed(nil, []byte("{}")),
		"tool-without-its-schema":  second(statestest.MustBundle(statestest.Content(), nil).Validate(catalog(t), must(statestest.GoodPlan), nil)),
		"empty-summary-has-no-way": second(new(policy.Bundle).Lock([]byte("{}"), nil)),
	} {
		if v.Allows() || !v.Blocks() {
			t.Errorf("%s: %+v, want it to block", name, v)
		}
	}
	empty := statestest.Content()
	empty.Allowlist = nil
	b := statestest.MustBundle(empty, nil)
	c := b.Catalog("test", statestest.Listings(statestest.Page))
	if _, v := b.Validate(c, must(statestest.GoodPlan), nil); v.Code != policy.CodeToolNotAllowed || len(c.Effective()) != 0 {
		t.Errorf("an empty allowlist: %+v, %d effective tools; want everything denied", v, len(c.Effective()))
	}
}

func second[T any](_ T, v policy.Verdict) policy.Verdict { return v }

func TestWantsSummary(t *testing.T) {
	for _, tc := range []struct {
		mode, request string
		want          bool
	}{
		{policy.SummaryAsked, "Summarize policy-002", true},
		{policy.SummaryAsked, "please SUMMARISE it", true},
		{policy.SummaryAsked, "give me a summary", false},
		{policy.SummaryAsked, "", false},
		{policy.SummaryAlways, "", true},
		{policy.SummaryNever, "summarize", false},
	} {
		content := statestest.Content()
		content.Summary = tc.mode
		if got := statestest.MustBundle(content, nil).WantsSummary(tc.request); got != tc.want {
			t.Errorf("WantsSummary(%q) with %s = %v, want %v", tc.request, tc.mode, got, tc.want)
		}
	}
}

func TestReadResult(t *testing.T) {
	for _, tc := range []struct{ name, raw, structured, note string }{
		{"typed", `{"content":[],"structuredContent":{"b":1.0,"a":"\u0061"}}`, `{"a":"a","b":1.0}`, ""},
		{"is-error-false", `{"isError":false,"structuredContent":{}}`, `{}`, ""},
		{"is-error", `{"isError":true,"structuredContent":{}}`, "", "reports an error"},
		{"asks-for-input", `{"resultType":"input_required","structuredContent":{}}`, "", "not complete"},
		{"asks-for-input-without-saying-so", `{"structuredContent":{},"inputRequests":{}}`, "", "asks for input"},
		{"no-structured-content", `{"content":[]}`, "", "no structured content"},
		{"first-that-stands-in-the-way", `{"isError":true,"resultType":"x","requestState":"","inputRequests":{}}`, "", "it has inputRequests"},
		{"array", `[]`, "", "not a JSON object"},
		{"text-behind", `{}{}`, "", "strict JSON"},
		{"duplicate-inside", `{"content":[{"a":1,"a":1}]}`, "", "strict JSON"},
		{"duplicate", `{"isError":true,"isError":false,"structuredContent":{}}`, "", "strict JSON"},
		{"depth-at-the-limit", `{"structuredContent":{"a":[]}}`, `{"a":[]}`, ""},
		{"depth-one-past", `{"structuredContent":{"a":[[]]}}`, "", "nests too deep"},
	} {
		structured, note := policy.ReadResult([]byte(tc.raw), nil, 3)
		if string(structured) != tc.structured || !strings.Contains(note, tc.note) || tc.note == "" && note != "" {
			t.Errorf("%s: ReadResult() = %s, %q; want %s, %q", tc.name, structured, note, tc.structured, tc.note)
		}
	}
}
