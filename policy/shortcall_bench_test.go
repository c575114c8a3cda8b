package policy_test

import (
	"fmt"
	"testing"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/rules"
)

// What an agent's short call holds, the texts that are taken from it included.
const shortCall = `{"args":{"message":"hello"},"server":"kb","tool":"echo","type":"call_tool"}`

const shortTool = `{"name":"echo","description":"Says what it is told.","inputSchema":{"type":"object","properties":` +
	`{"message":{"type":"string","maxLength":4096}},"required":["message"],"additionalProperties":false}}`

const shortResult = `{"content":[{"type":"text","text":"hello"}]}`

// shortBundle has the default input rules and a hundred policies, of which the last has a condition and fits.
func shortBundle(b *testing.B) (*policy.Bundle, *policy.Catalog) {
	b.Helper()
	policies := make([]rules.Policy, 99, 100)
	for i := range policies {
		policies[i] = rules.Policy{ID: fmt.Sprint("other", i), Effect: rules.Deny,
			Match: rules.Match{Server: fmt.Sprint("erp", i), Tool: "export_*"}}
	}
	policies = append(policies, rules.Policy{ID: "work", When: `risk.mode != "danger"`, Effect: rules.Allow})
	bundle, err := policy.Compile(policy.Content{
		Format: policy.ContentFormat, Env: "test",
		Servers:   []policy.Server{{Name: "kb", Type: "http", URL: "http://127.0.0.1:5103/mcp", Timeout: 1000}},
		Allowlist: []policy.Allowance{{Server: "kb", Tools: []string{"echo"}}},
		Input:     policy.Input{MaxBytes: policy.DefaultInputBytes, Rules: policy.DefaultRules()},
		Planner:   policy.Planner{Mode: policy.PlannerRouter}, Summary: policy.SummaryNever,
		Limits: policy.DefaultLimits(), Policy: &rules.Content{Policies: policies},
	})
	if err != nil {
		b.Fatal(err)
	}
	page := `{"tools":[` + shortTool + `]}`
	return bundle, bundle.Catalog(canonical.Sum("catalog", []byte(page)), []policy.Listing{
		{Server: "kb", Status: policy.ServerUp, Pages: []canonical.Text{canonical.Text(page)}},
	})
}

// BenchmarkShortCall is each gate that an agent's short call passes.
func BenchmarkShortCall(b *testing.B) {
	bundle, catalog := shortBundle(b)
	plan, v := policy.ReadPlan([]byte(shortCall), bundle.Limits())
	if !v.Allows() {
		b.Fatal(v)
	}
	tool, v := bundle.Validate(catalog, plan)
	if !v.Allows() {
		b.Fatal(v)
	}
	question := policy.Question{Server: "kb", Tool: tool, Env: "test", Actor: "local:alice", Arguments: plan.Args, Now: "2026-11-21T09:00:00Z"}
	for _, gate := range []struct {
		name   string
		passes func() bool
	}{
		{"screen", func() bool {
			return bundle.ScreenCall(policy.KindAgent, []byte(shortCall), nil).Allows()
		}},
		{"plan", func() bool { _, v := policy.ReadPlan([]byte(shortCall), bundle.Limits()); return v.Allows() }},
		{"validate", func() bool { _, v := bundle.Validate(catalog, plan); return v.Allows() }},
		{"authorize", func() bool { return bundle.Authorize(tool, tool.Digest, plan.Args, nil).Allows() }},
		{"decide", func() bool { return bundle.Decide(question).Verdict.Allows() }},
		{"result", func() bool {
			_, note := policy.ReadResult([]byte(shortResult), bundle.Limits().JSONDepth)
			return note == "the result has no structured content"
		}},
	} {
		b.Run(gate.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !gate.passes() {
					b.Fatal("the call does not pass")
				}
			}
		})
	}
}
