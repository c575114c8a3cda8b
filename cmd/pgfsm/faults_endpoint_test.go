package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgfsm/internal/cli"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
)

const (
	typedTool = `{"tools":[{"name":"look","inputSchema":{"type":"object"},"outputSchema":{"type":"object",
		"required":["text"],"additionalProperties":false,"properties":{"text":{"type":"string"}}}}]}`
	typedText = `{"content":[],"structuredContent":{"text":"The gate is closed at night by the porter."}}`
	lookPlan  = `{"type":"call_tool","server":"puppet","tool":"look","args":{}}`
)

// typedPuppet is an honest server whose one tool has a typed result.
func typedPuppet(t *testing.T) *mcptest.Server {
	t.Helper()
	return mcptest.New(t, func(method string) string {
		switch method {
		case "tools/list":
			return typedTool
		case "tools/call":
			return typedText
		}
		return mcptest.Honest(method)
	})
}

// TestFaultsOfTheEndpoint: an endpoint misbehaves when it is asked for the plan: nothing is called. When it misbehaves at the summary, the
// result stands without one. The record replays. Other faults are shown in package llm.
func TestFaultsOfTheEndpoint(t *testing.T) {
	t.Parallel()
	hangs := func(m *mcptest.Model, _ http.ResponseWriter, r *http.Request, _ mcptest.Prompt) { m.Hang(r) }
	tooLong := func(_ *mcptest.Model, w http.ResponseWriter, _ *http.Request, _ mcptest.Prompt) {
		mcptest.SayJSON(w, http.StatusOK, mcptest.Spoken(lookPlan+strings.Repeat(" ", 1000)))
	}
	refused := []string{"/type", "blocked", "/state", "blocked", "/effect", "not_sent"}
	failed := []string{"/type", "failed", "/state", "failed", "/gate", "run", "/effect", "not_sent"}
	answered := []string{"/type", "tool_result", "/state", "answered", "/effect", "done", "/summary", ""}
	for _, tt := range []struct {
		name, kind string
		say        mcptest.Saying
		cancelled  bool // the operator cancels while the endpoint thinks
		timeout    string
		code       int
		members    []string
		note       string
	}{
		{"plan-hangs", "plan", hangs, false, "1500ms", cli.ExitFailed, slices.Concat(failed, []string{"/code", "deadline_exceeded"}), ""},
		{"plan-too-long", "plan", tooLong, false, "1m", cli.ExitNo, slices.Concat(refused, []string{"/code", "plan_too_large"}), ""},
		{"plan-cancelled", "plan", hangs, true, "1m", cli.ExitNo, slices.Concat(refused, []string{"/code", "cancelled"}), ""},
		{"summary-hangs", "summary", hangs, false, "1500ms", cli.ExitYes, answered, "No summary (deadline_exceeded): "},
		{"summary-too-long", "summary", tooLong, false, "1m", cli.ExitYes, answered, "Summary refused (summary_not_strict): "},
		{"summary-cancelled", "summary", hangs, true, "1m", cli.ExitYes, answered, "No summary (cancelled)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(clitest.Patient(t))
			defer cancel()
			model := mcptest.NewModel(t, func(m *mcptest.Model, w http.ResponseWriter, r *http.Request, p mcptest.Prompt) {
				if p.Kind != tt.kind {
					mcptest.SayJSON(w, http.StatusOK, mcptest.Spoken(lookPlan))
					return
				}
				if tt.cancelled {
					cancel()
				}
				tt.say(m, w, r, p)
			})
			p := typedPuppet(t)
			config, traces := modelConfig(t, p.URL, model.URL+"/v1", tt.timeout, "limits: {plan_bytes: 1000}\nsummary: {mode: always}")

			r := command(ctx, nil, "run", "--json", "-c", config, "have a look")
			r.Want(t, tt.code, tt.members...)
			if note := r.Member("/note"); !strings.HasPrefix(note, tt.note) || r.Stderr != "" {
				t.Errorf("note = %q, want it to begin with %q; stderr = %q", note, tt.note, r.Stderr)
			}
			if tt.kind == "plan" {
				p.Reached(t, 0)
			} else {
				p.Reached(t, 1)
			}
			replays(t, traces, 1)
		})
	}
}
