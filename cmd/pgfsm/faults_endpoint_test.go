package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	typedTool = `{"tools":[{"name":"look","inputSchema":{"type":"object"},"outputSchema":{"type":"object",
		"required":["text"],"additionalProperties":false,"properties":{"text":{"type":"string"}}}}]}`
	typedText = `{"content":[],"structuredContent":{"text":"The gate is closed at night by the porter."}}`
	lookPlan  = `{"type":"call_tool","server":"puppet","tool":"look","args":{}}`
	gateItem  = `{"items":[{"claim":"The gate is closed.","evidence":"The gate is closed at night"}]}`
)

// typedPuppet is an honest server whose one tool has a typed result. It counts the calls.
func typedPuppet(t *testing.T) (*puppet, *atomic.Int32) {
	t.Helper()
	calls := new(atomic.Int32)
	return newPuppet(t, func(method string) string {
		switch method {
		case "tools/list":
			return typedTool
		case "tools/call":
			calls.Add(1)
			return typedText
		}
		return honest(method)
	}), calls
}

// faultConfig writes a configuration with an oracle as the model and short limits.
func faultConfig(t *testing.T, server, endpoint, timeout, more string) (config, traces string) {
	t.Helper()
	dir := folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {puppet: {type: http, url: %q}}
allowlist: allowlist.json
input: {defaults: false}
planner: {mode: llm, llm: {base_url: %q, model: scripted-1, timeout: %s}}
%s
`, server, endpoint, timeout, more), "allowlist.json", `{"puppet": ["look"]}`)
	return filepath.Join(dir, "pgfsm.yaml"), filepath.Join(dir, "traces")
}

// An endpointFault is an endpoint that misbehaves, whatever it is asked for.
type endpointFault struct {
	name    string
	say     saying
	timeout string // of the model; empty: long
	asks    int    // how many requests come
	code    string // of the plan's end
}

func replies(code int, body string, header ...string) saying {
	return func(_ *oracle, w http.ResponseWriter, _ *http.Request, _ asked) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		sayJSON(w, code, body)
	}
}

// padded is a body of exactly n bytes that says something.
func padded(content string, n int) string {
	body := spoken(content)
	return body + strings.Repeat(" ", n-len(body))
}

// completionLimit is what is read of one response.
const completionLimit = 4 << 20

func endpointFaults(decoy string) []endpointFault {
	const failed, late, empty = "planner_failed", "deadline_exceeded", "plan_empty"
	ok := http.StatusOK
	return []endpointFault{
		{"hangs", func(o *oracle, _ http.ResponseWriter, r *http.Request, _ asked) { o.hang(r) }, "1500ms", 1, late},
		{"hangs-in-the-body", func(o *oracle, w http.ResponseWriter, r *http.Request, _ asked) {
			io.WriteString(w, `{"choices":[`)
			http.NewResponseController(w).Flush()
			o.hang(r)
		}, "1500ms", 1, late},
		{"answers-500", replies(500, `{"error":{"message":"boom"}}`), "", 1, failed},
		{"answers-503", replies(503, "busy", "Retry-After", "0"), "", 1, failed},
		{"answers-429", replies(429, `{"error":{"message":"slow down"}}`, "Retry-After", "0"), "", 1, failed},
		{"answers-408", replies(408, "again"), "", 1, failed},
		{"answers-409", replies(409, "again"), "", 1, failed},
		{"answers-401", replies(401, `{"error":{"message":"who?"}}`), "", 1, failed},
		{"answers-404", replies(404, "no such model"), "", 1, failed},
		{"answers-400-twice", replies(400, `{"error":{"message":"no"}}`), "", 2, failed},
		{"answers-422-twice", replies(422, `{"error":{"message":"no"}}`), "", 2, failed},
		{"answers-201-with-a-completion", replies(201, spoken(lookPlan)), "", 1, failed},
		{"answers-204", replies(204, ""), "", 1, failed},
		{"html", func(_ *oracle, w http.ResponseWriter, _ *http.Request, _ asked) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<html><body>Welcome to the Wi-Fi</body></html>")
		}, "", 1, failed},
		{"half-a-body", func(_ *oracle, w http.ResponseWriter, _ *http.Request, _ asked) {
			body := spoken(lookPlan)
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			io.WriteString(w, body[:len(body)/2])
		}, "", 1, failed},
		{"half-a-body-that-looks-whole", replies(ok, spoken(lookPlan)[:100]), "", 1, failed},
		{"connection-cut", func(*oracle, http.ResponseWriter, *http.Request, asked) { panic(http.ErrAbortHandler) },
			"", 1, failed},
		{"empty-body", replies(ok, ""), "", 1, failed},
		{"one-byte-too-many", replies(ok, padded(lookPlan, completionLimit+1)), "", 1, failed},
		{"redirects-elsewhere", replies(307, "", "Location", decoy+"/v1/chat/completions"), "", 1, failed},
		{"redirects-to-get", replies(303, "", "Location", decoy), "", 1, failed},
		{"duplicate-member", replies(ok, `{"choices":[],`+spoken(lookPlan)[1:]), "", 1, failed},
		{"duplicate-member-deep", replies(ok, chat(`{"content":"x","content":`+quoted(lookPlan)+`}`)), "", 1, failed},
		{"no-choice", replies(ok, `{"object":"chat.completion","choices":[]}`), "", 1, failed},
		{"choices-missing", replies(ok, `{"object":"chat.completion"}`), "", 1, failed},
		{"two-choices", replies(ok, `{"choices":[{"index":0,"message":{"content":`+quoted(lookPlan)+
			`}},{"index":1,"message":{"content":"{}"}}]}`), "", 1, failed},
		{"content-is-a-number", replies(ok, chat(`{"content":7}`)), "", 1, failed},
		{"content-in-parts", replies(ok, chat(`{"content":[{"type":"text","text":"{}"}]}`)), "", 1, failed},
		{"text-behind", replies(ok, spoken(lookPlan)+"{}"), "", 1, failed},
		{"a-stream", func(_ *oracle, w http.ResponseWriter, _ *http.Request, _ asked) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", spoken(lookPlan))
		}, "", 1, failed},
		{"content-empty", replies(ok, spoken("")), "", 1, empty},
		{"content-null", replies(ok, chat(`{"role":"assistant","content":null}`)), "", 1, empty},
		{"content-missing", replies(ok, chat(`{"role":"assistant","tool_calls":[{"id":"1","type":"function",
			"function":{"name":"look","arguments":"{}"}}]}`)), "", 1, empty},
		{"refusal", replies(ok, chat(`{"role":"assistant","content":null,"refusal":"I would rather not."}`)), "", 1, empty},
		{"refusal-beside-a-plan", replies(ok, chat(`{"content":`+quoted(lookPlan)+`,"refusal":"Not this."}`)), "", 1, empty},
		{"content-over-plan-bytes", replies(ok, spoken(lookPlan+strings.Repeat(" ", 1000-len(lookPlan)+1))), "", 1,
			"plan_too_large"},
	}
}

// TestFaultsOfTheEndpoint: an endpoint that misbehaves when it is asked for the plan. Nothing is called, the run ends
// where it should, and the record of it replays. The same when it is asked for the summary: the result stands.
func TestFaultsOfTheEndpoint(t *testing.T) {
	t.Parallel()
	decoy := newOracle(t, saysBoth(lookPlan, gateItem))
	for _, tt := range endpointFaults(decoy.URL) {
		if tt.timeout == "" {
			tt.timeout = "1m"
		}
		t.Run("plan/"+tt.name, func(t *testing.T) {
			t.Parallel()
			o := newOracle(t, tt.say)
			p, calls := typedPuppet(t)
			config, traces := faultConfig(t, p.URL, o.URL+"/v1", tt.timeout, "limits: {plan_bytes: 1000}")
			r := command(patient(t), nil, "run", "--json", "-c", config, "have a look")
			exit, end, gate := exitCould, "failed", "run"
			if strings.HasPrefix(tt.code, "plan_") {
				exit, end, gate = exitNo, "blocked", "plan"
			}
			r.want(t, exit, "/type", end, "/state", end, "/gate", gate, "/code", tt.code, "/effect", "not_sent")
			if r.member("/reason") == "" || r.stderr != "" {
				t.Errorf("reason = %q, stderr = %q, want a reason and nothing", r.member("/reason"), r.stderr)
			}
			if got := len(o.requests()); got != tt.asks {
				t.Errorf("requests to the endpoint = %d, want %d", got, tt.asks)
			}
			if got := calls.Load(); got != 0 {
				t.Errorf("calls that reached the server = %d, want 0", got)
			}
			o.Close()
			p.Close()
			wantExchanges(t, r.member("/trace"), tt.asks)
			replays(t, traces, 1)
		})
		t.Run("summary/"+tt.name, func(t *testing.T) {
			t.Parallel()
			o := newOracle(t, func(o *oracle, w http.ResponseWriter, r *http.Request, q asked) {
				if q.kind == "plan" {
					sayJSON(w, http.StatusOK, spoken(lookPlan))
					return
				}
				tt.say(o, w, r, q)
			})
			p, calls := typedPuppet(t)
			config, traces := faultConfig(t, p.URL, o.URL+"/v1", tt.timeout, "summary: {mode: always}")
			r := command(patient(t), nil, "run", "--json", "-c", config, "have a look")
			r.want(t, exitYes, "/type", "tool_result", "/state", "answered", "/effect", "done", "/summary", "",
				"/typed/text", "The gate is closed at night by the porter.")
			want := "No summary (" + tt.code + "): "
			if strings.HasPrefix(tt.name, "content-") && strings.HasPrefix(tt.code, "plan_") {
				want = "Summary refused (summary_not_strict): " // it came, and is the evidence gate's to refuse
			}
			if note := r.member("/note"); !strings.HasPrefix(note, want) {
				t.Errorf("note = %q, want it to begin with %q", note, want)
			}
			if got := len(o.requests()); got != 1+tt.asks {
				t.Errorf("requests to the endpoint = %d, want %d", got, 1+tt.asks)
			}
			if got := calls.Load(); got != 1 {
				t.Errorf("calls that reached the server = %d, want 1", got)
			}
			o.Close()
			p.Close()
			wantExchanges(t, r.member("/trace"), 1+tt.asks)
			replays(t, traces, 1)
		})
	}
	t.Cleanup(func() { // after the parallel ones
		if got := len(decoy.requests()); got != 0 {
			t.Errorf("requests to where the endpoint redirects = %d, want 0", got)
		}
	})
}

// exchangesIn returns the status of every exchange that a trace holds, in order.
func exchangesIn(t *testing.T, trace string) (all []string) {
	t.Helper()
	doc := ran{stdout: textOf(t, trace)}
	for i := 0; doc.member(fmt.Sprintf("/steps/%d/to", i)) != ""; i++ {
		for k := 0; ; k++ {
			at := fmt.Sprintf("/steps/%d/event/exchanges/%d/", i, k)
			if doc.member(at+"status") == "" {
				break
			}
			if doc.member(at+"sent") == "" {
				t.Errorf("%s: nothing was sent", at)
			}
			all = append(all, doc.member(at+"status"))
		}
	}
	return all
}

func wantExchanges(t *testing.T, trace string, n int) {
	t.Helper()
	if got := exchangesIn(t, trace); len(got) != n {
		t.Errorf("exchanges in the trace = %v, want %d", got, n)
	}
}

// TestFaultsOfNoEndpoint: where nobody listens, nothing is asked and nothing called.
func TestFaultsOfNoEndpoint(t *testing.T) {
	t.Parallel()
	p, calls := typedPuppet(t)
	config, traces := faultConfig(t, p.URL, strings.TrimSuffix(closedURL(), "/mcp")+"/v1", "1m", "")
	r := command(patient(t), nil, "run", "--json", "-c", config, "have a look")
	r.want(t, exitCould, "/type", "failed", "/code", "planner_failed", "/gate", "run", "/effect", "not_sent")
	if reason := r.member("/reason"); !strings.Contains(reason, "refused") || calls.Load() != 0 {
		t.Errorf("reason = %q after %d calls, want it to say that the connection was refused", reason, calls.Load())
	}
	replays(t, traces, 1)
}

// TestFaultsAtTheLimits: what is just within the limits passes.
func TestFaultsAtTheLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		say  saying
	}{
		{"a-response-of-exactly-the-limit", replies(200, padded(lookPlan, completionLimit))},
		{"content-of-exactly-plan-bytes", replies(200, spoken(lookPlan+strings.Repeat(" ", 1000-len(lookPlan))))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOracle(t, tt.say)
			p, calls := typedPuppet(t)
			config, traces := faultConfig(t, p.URL, o.URL+"/v1", "1m", "limits: {plan_bytes: 1000}")
			r := command(patient(t), nil, "run", "--json", "-c", config, "have a look")
			r.want(t, exitYes, "/type", "tool_result", "/effect", "done")
			if got := calls.Load(); got != 1 {
				t.Errorf("calls = %d, want 1", got)
			}
			replays(t, traces, 1)
		})
	}
}

// TestFaultsThatAreRepeated: 400 and 422 draw one repetition without response_format, for the plan and for the summary,
// and both exchanges stand in the one event.
func TestFaultsThatAreRepeated(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusBadRequest, http.StatusUnprocessableEntity} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			o := newOracle(t, func(_ *oracle, w http.ResponseWriter, _ *http.Request, q asked) {
				switch {
				case q.format:
					sayJSON(w, code, `{"error":{"message":"response_format is not supported"}}`)
				case q.kind == "summary":
					sayJSON(w, http.StatusOK, spoken(gateItem))
				default:
					sayJSON(w, http.StatusOK, spoken(lookPlan))
				}
			})
			p, calls := typedPuppet(t)
			config, traces := faultConfig(t, p.URL, o.URL+"/v1", "1m", "summary: {mode: always}")
			r := command(patient(t), nil, "run", "--json", "-c", config, "have a look")
			r.want(t, exitYes, "/type", "tool_result_with_summary", "/summary/0/evidence", "The gate is closed at night")
			var got []string
			for _, q := range o.requests() {
				got = append(got, fmt.Sprintf("%s %t", q.kind, q.format))
			}
			if d := cmp.Diff([]string{"plan true", "plan false", "summary true", "summary false"}, got); d != "" {
				t.Errorf("requests (-want +got):\n%s", d)
			}
			first := fmt.Sprint(code)
			if d := cmp.Diff([]string{first, "200", first, "200"}, exchangesIn(t, r.member("/trace"))); d != "" {
				t.Errorf("exchanges in the trace (-want +got):\n%s", d)
			}
			if calls.Load() != 1 {
				t.Errorf("calls = %d, want 1", calls.Load())
			}
			replays(t, traces, 1)
		})
	}
}

// TestFaultsStoppedWhileItThinks: who cancels, and time that runs out, while the endpoint thinks.
func TestFaultsStoppedWhileItThinks(t *testing.T) {
	t.Parallel()
	const always = "summary: {mode: always}"
	notSent := func(end, code string) []string {
		return []string{"/type", end, "/state", end, "/code", code, "/effect", "not_sent"}
	}
	stands := []string{"/type", "tool_result", "/state", "answered", "/effect", "done", "/summary", ""}
	for _, tt := range []struct {
		name, thinks, more string
		cancel             bool
		code               int
		members            []string
		note               string
	}{
		{"cancel-before-the-plan", "plan", "", true, exitNo, notSent("blocked", "cancelled"), ""},
		{"cancel-before-the-summary", "summary", always, true, exitYes, stands, "No summary (cancelled)"},
		{"run-timeout-before-the-plan", "plan", "", false, exitCould, notSent("failed", "deadline_exceeded"), ""},
		{"run-timeout-before-the-summary", "summary", always, false, exitYes, stands, "No summary (deadline_exceeded)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := newOracle(t, func(o *oracle, w http.ResponseWriter, r *http.Request, q asked) {
				if q.kind == tt.thinks {
					o.hang(r)
					return
				}
				sayJSON(w, http.StatusOK, spoken(lookPlan))
			})
			r, traces := stoppedWhile(t, o, tt.thinks, tt.more, tt.cancel)
			r.want(t, tt.code, tt.members...)
			if note := r.member("/note"); !strings.HasPrefix(note, tt.note) {
				t.Errorf("note = %q, want it to begin with %q", note, tt.note)
			}
			replays(t, traces, 1)
		})
	}
}

// stoppedWhile runs until the oracle thinks, and cancels then, or lets the run's time run out. On a busy machine that
// can be before the oracle was asked, which is another case, so there is more time then.
func stoppedWhile(t *testing.T, o *oracle, thinks, more string, cancelled bool) (r ran, traces string) {
	t.Helper()
	for timeout := 500; ; timeout *= 4 {
		limits := ""
		if !cancelled {
			limits = fmt.Sprintf("\nlimits: {run_timeout: %dms}", timeout)
		}
		p, _ := typedPuppet(t)
		config, traces := faultConfig(t, p.URL, o.URL+"/v1", "5m", more+limits)
		ctx, cancel := context.WithCancel(t.Context())
		reached := make(chan bool, 1)
		go func() {
			reached <- func() bool {
				for {
					select {
					case q := <-o.came:
						if q.kind == thinks {
							if cancelled {
								cancel()
							}
							return true
						}
					case <-ctx.Done():
						return false
					}
				}
			}()
		}()
		r := command(ctx, nil, "run", "--json", "-c", config, "have a look")
		cancel()
		if <-reached || timeout > 100_000 {
			return r, traces
		}
	}
}

// TestFaultsInterruptKey: what Ctrl-C sends while the endpoint thinks ends the process in good order.
func TestFaultsInterruptKey(t *testing.T) {
	t.Parallel()
	o := newOracle(t, func(o *oracle, _ http.ResponseWriter, r *http.Request, _ asked) { o.hang(r) })
	p, calls := typedPuppet(t)
	config, traces := faultConfig(t, p.URL, o.URL+"/v1", "1m", "")
	cmd, stdout, stderr := child(t.Context(), "pgfsm", nil, "run", "--json", "-c", config, "have a look")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-o.came
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	ran{exitCodeOf(t, cmd.Wait()), stdout.String(), stderr.String()}.want(t, exitNo,
		"/type", "blocked", "/code", "cancelled", "/effect", "not_sent")
	if calls.Load() != 0 {
		t.Errorf("calls = %d, want 0", calls.Load())
	}
	replays(t, traces, 1)
}

// TestFaultsKilledWhileItThinks: a process that was killed while the endpoint thought has called nothing, and the next
// start says so.
func TestFaultsKilledWhileItThinks(t *testing.T) {
	t.Parallel()
	o := newOracle(t, func(o *oracle, _ http.ResponseWriter, r *http.Request, _ asked) { o.hang(r) })
	p, calls := typedPuppet(t)
	config, traces := faultConfig(t, p.URL, o.URL+"/v1", "1m", "")
	cmd, _, _ := child(t.Context(), "pgfsm", nil, "run", "--json", "-c", config, "have a look")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-o.came
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // killed, as was to be
	next := command(patient(t), nil, "call", "--json", "-c", config, "puppet", "no-such-tool", "{}")
	next.want(t, exitNo, "/code", "tool_unknown")
	if !strings.Contains(next.stderr, "a left-over run ended as failed interrupted") || calls.Load() != 0 {
		t.Errorf("stderr = %q after %d calls, want the killed run to end as interrupted", next.stderr, calls.Load())
	}
	replays(t, traces, 2)
}
