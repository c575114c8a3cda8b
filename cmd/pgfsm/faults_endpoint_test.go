package main

import (
	"context"
	"net/http"
	"pgfsm/internal/test/cli"
	"pgfsm/internal/test/mcptest"
	"strings"
	"sync/atomic"
	"testing"
)

const (
	typedTool = `{"tools":[{"name":"look","inputSchema":{"type":"object"},"outputSchema":{"type":"object",
		"required":["text"],"additionalProperties":false,"properties":{"text":{"type":"string"}}}}]}`
	typedText = `{"content":[],"structuredContent":{"text":"The gate is closed at night by the porter."}}`
	lookPlan  = `{"type":"call_tool","server":"puppet","tool":"look","args":{}}`
	gateItem  = `{"items":[{"claim":"The gate is closed.","evidence":"The gate is closed at night"}]}`
)

// typedPuppet is an honest server whose one tool has a typed result. It counts the calls.
func typedPuppet(t *testing.T) (*mcptest.Server, *atomic.Int32) {
	t.Helper()
	calls := new(atomic.Int32)
	return mcptest.New(t, func(method string) string {
		switch method {
		case "tools/list":
			return typedTool
		case "tools/call":
			calls.Add(1)
			return typedText
		}
		return mcptest.Honest(method)
	}), calls
}

// An endpointFault is an endpoint that misbehaves, whatever it is asked for.
type endpointFault struct {
	name    string
	say     mcptest.Saying
	timeout string // of the model; empty: long
	asks    int    // how many requests come
	code    string // of the plan's end
}

func replies(code int, body string, header ...string) mcptest.Saying {
	return func(_ *mcptest.Model, w http.ResponseWriter, _ *http.Request, _ mcptest.Prompt) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		mcptest.SayJSON(w, code, body)
	}
}

func endpointFaults(decoy string) []endpointFault {
	const failed, late, empty = "planner_failed", "deadline_exceeded", "plan_empty"
	ok := http.StatusOK
	return []endpointFault{
		{"hangs", func(o *mcptest.Model, _ http.ResponseWriter, r *http.Request, _ mcptest.Prompt) { o.Hang(r) }, "1500ms", 1, late},
		{"redirects-elsewhere", replies(307, "", "Location", decoy+"/v1/chat/completions"), "", 1, failed},
		{"content-over-plan-bytes", replies(ok, mcptest.Spoken(lookPlan+strings.Repeat(" ", 1000-len(lookPlan)+1))), "", 1,
			"plan_too_large"},
	}
}

// TestFaultsOfTheEndpoint: an endpoint that misbehaves when it is asked for the plan. Nothing is called, the run ends
// where it should, and the record of it replays. The same when it is asked for the summary: the result stands.
func TestFaultsOfTheEndpoint(t *testing.T) {
	t.Parallel()
	decoy := mcptest.NewModel(t, mcptest.SaysBoth(lookPlan, gateItem))
	for _, tt := range endpointFaults(decoy.URL) {
		if tt.timeout == "" {
			tt.timeout = "1m"
		}
		for _, kind := range []string{"plan", "summary"} {
			t.Run(kind+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				o := mcptest.NewModel(t, func(o *mcptest.Model, w http.ResponseWriter, r *http.Request, q mcptest.Prompt) {
					if q.Kind != kind {
						mcptest.SayJSON(w, http.StatusOK, mcptest.Spoken(lookPlan))
						return
					}
					tt.say(o, w, r, q)
				})
				p, calls := typedPuppet(t)
				config, traces := modelConfig(t, p.URL, o.URL+"/v1", tt.timeout, "limits: {plan_bytes: 1000}\nsummary: {mode: always}")
				r := command(cli.Patient(t), nil, "run", "--json", "-c", config, "have a look")
				asks, made := tt.asks, int32(0)
				switch {
				case kind == "summary":
					asks, made = tt.asks+1, 1
					r.Want(t, exitYes, "/type", "tool_result", "/state", "answered", "/effect", "done", "/summary", "",
						"/typed/text", "The gate is closed at night by the porter.")
					want := "No summary (" + tt.code + "): "
					if strings.HasPrefix(tt.name, "content-") && strings.HasPrefix(tt.code, "plan_") {
						want = "Summary refused (summary_not_strict): " // it came, and is the evidence gate's to refuse
					}
					if note := r.Member("/note"); !strings.HasPrefix(note, want) {
						t.Errorf("note = %q, want it to begin with %q", note, want)
					}
				case strings.HasPrefix(tt.code, "plan_"):
					r.Want(t, exitNo, "/type", "blocked", "/state", "blocked", "/gate", "plan", "/code", tt.code, "/effect", "not_sent")
				default:
					r.Want(t, exitCould, "/type", "failed", "/state", "failed", "/gate", "run", "/code", tt.code, "/effect", "not_sent")
				}
				if kind == "plan" && r.Member("/reason") == "" || r.Stderr != "" {
					t.Errorf("reason = %q, stderr = %q, want a reason and nothing", r.Member("/reason"), r.Stderr)
				}
				if len(o.Prompts()) != asks || calls.Load() != made {
					t.Errorf("%d requests to the endpoint and %d calls, want %d and %d", len(o.Prompts()), calls.Load(), asks, made)
				}
				o.Close()
				p.Close()
				replays(t, traces, 1)
			})
		}
	}
	t.Cleanup(func() { // after the parallel ones
		if got := len(decoy.Prompts()); got != 0 {
			t.Errorf("requests to where the endpoint redirects = %d, want 0", got)
		}
	})
}

// TestFaultsCancelledWhileItThinks: who cancels while the endpoint thinks.
func TestFaultsCancelledWhileItThinks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind    string
		code    int
		members []string
		note    string
	}{
		{"plan", exitNo, []string{"/type", "blocked", "/state", "blocked", "/code", "cancelled", "/effect", "not_sent"}, ""},
		{"summary", exitYes, []string{"/type", "tool_result", "/state", "answered", "/effect", "done", "/summary", ""}, "No summary (cancelled)"},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			o := mcptest.NewModel(t, func(o *mcptest.Model, w http.ResponseWriter, r *http.Request, q mcptest.Prompt) {
				if q.Kind == tt.kind {
					cancel()
					o.Hang(r)
					return
				}
				mcptest.SayJSON(w, http.StatusOK, mcptest.Spoken(lookPlan))
			})
			p, _ := typedPuppet(t)
			config, traces := modelConfig(t, p.URL, o.URL+"/v1", "5m", "summary: {mode: always}")
			r := command(ctx, nil, "run", "--json", "-c", config, "have a look")
			r.Want(t, tt.code, tt.members...)
			if note := r.Member("/note"); !strings.HasPrefix(note, tt.note) {
				t.Errorf("note = %q, want it to begin with %q", note, tt.note)
			}
			replays(t, traces, 1)
		})
	}
}
