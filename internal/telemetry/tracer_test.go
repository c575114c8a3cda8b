package telemetry_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"

	"pgfsm/internal/telemetry"
	"pgfsm/internal/telemetry/otlptest"
	"pgfsm/internal/test/check"
)

// begun is a time that no clock gave.
var begun = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// tracer returns a tracer, and a function that ends it.
func tracer(t *testing.T, to telemetry.OTLP) (*telemetry.Tracer, func()) {
	t.Helper()
	tr, err := telemetry.NewTracer(to, "v1", strings.Clone, func(line string) { t.Error(line) })
	check.NoError(t, err)
	return tr, func() {
		t.Helper()
		if err := tr.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

const (
	agentTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	agentSpan   = "00f067aa0ba902b7"
	agentParent = "00-" + agentTrace + "-" + agentSpan + "-00"
)

// TestSpansFollowTheConventions: kinds, names and attributes are those of the conventions.
func TestSpansFollowTheConventions(t *testing.T) {
	call := func(o telemetry.Operation) telemetry.Operation {
		o.Method, o.Server, o.Tool, o.Protocol, o.RequestID = "tools/call", "kb", "echo", "2025-11-25", "7"
		return o
	}
	tool := map[string]string{
		"mcp.method.name": "tools/call", "gen_ai.tool.name": "echo", "gen_ai.operation.name": "execute_tool", "mcp.protocol.version": "2025-11-25",
		"jsonrpc.request.id": "7", "pgfsm.server": "kb",
	}
	with := func(all map[string]string, pairs ...string) map[string]string {
		all = maps.Clone(all)
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = pairs[i+1]
		}
		return all
	}
	for _, tc := range []struct {
		name   string
		client bool
		o      telemetry.Operation
		span   string
		status string // empty: no error
		want   map[string]string
	}{
		{"server-lists-tools", false, telemetry.Operation{Method: "tools/list", RequestID: "a", Protocol: "2026-07-28"}, "tools/list", "",
			map[string]string{"mcp.method.name": "tools/list", "jsonrpc.request.id": "a", "mcp.protocol.version": "2026-07-28", "network.transport": "tcp"}},
		{"server-over-stdio", false, telemetry.Operation{Method: "ping", Stdio: true}, "ping", "",
			map[string]string{"mcp.method.name": "ping", "network.transport": "pipe"}},
		{"server-unknown-method", false, telemetry.Operation{Method: telemetry.Other, ErrorType: "-32601"}, "_other", "-32601",
			map[string]string{"mcp.method.name": "_other", "error.type": "-32601", "rpc.response.status_code": "-32601", "network.transport": "tcp"}},
		{"server-calls-tool", false, call(telemetry.Operation{Run: "r", Decision: "deny", Gate: "policy", ErrorType: "tool_error"}), "tools/call echo", "tool_error",
			with(tool, "pgfsm.run", "r", "pgfsm.decision", "deny", "pgfsm.gate", "policy", "error.type", "tool_error", "network.transport", "tcp")},
		{"server-request-id-too-long", false, telemetry.Operation{Method: "ping", RequestID: strings.Repeat("x", 65)}, "ping", "",
			map[string]string{"mcp.method.name": "ping", "network.transport": "tcp"}},
		{"client-over-http", true, call(telemetry.Operation{URL: "https://kb.example.com/mcp?key=secret"}), "tools/call echo", "",
			with(tool, "network.transport", "tcp", "server.address", "kb.example.com", "server.port", "443")},
		{"client-over-http-with-port", true, call(telemetry.Operation{URL: "http://[::1]:8080/mcp", ErrorType: "timeout"}), "tools/call echo", "timeout",
			with(tool, "network.transport", "tcp", "server.address", "::1", "server.port", "8080", "error.type", "timeout")},
		{"client-over-stdio", true, call(telemetry.Operation{}), "tools/call echo", "", with(tool, "network.transport", "pipe")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := otlptest.New(t)
			tr, end := tracer(t, telemetry.OTLP{Endpoint: r.URL, Sample: 1})
			tc.o.Begun, tc.o.Took = begun, time.Second
			kind := traces.Span_SPAN_KIND_SERVER
			if tc.client {
				kind = traces.Span_SPAN_KIND_CLIENT
				tr.Called(tr.NewCall(), nil, tc.o)
			} else {
				tr.Served(tr.Begin(t.Context(), "", ""), tc.o)
			}
			end()
			s := r.Spans(t, 1)[0]
			if diff := cmp.Diff(tc.want, otlptest.Attributes(s)); diff != "" {
				t.Error(diff)
			}
			if s.Kind != kind || s.Name != tc.span || s.GetStatus().GetMessage() != tc.status || (s.GetStatus().GetCode() == traces.Status_STATUS_CODE_ERROR) != (tc.status != "") {
				t.Errorf("kind %s, name %q, status %v", s.Kind, s.Name, s.Status)
			}
			if s.StartTimeUnixNano != uint64(begun.UnixNano()) || s.EndTimeUnixNano-s.StartTimeUnixNano != uint64(time.Second) {
				t.Errorf("from %d to %d", s.StartTimeUnixNano, s.EndTimeUnixNano)
			}
			if s.GetStatus().GetCode() != traces.Status_STATUS_CODE_ERROR && tc.status != "" || r.Contains("secret") {
				t.Errorf("status %v", s.Status)
			}
		})
	}
}

// TestOneTrace: the agent's span is the parent of the request's, which is the parent of the call's. An approved call is a trace of its own, which links
// to the request.
func TestOneTrace(t *testing.T) {
	r := otlptest.New(t)
	tr, end := tracer(t, telemetry.OTLP{Endpoint: r.URL, Sample: 1})
	ctx := tr.Begin(t.Context(), agentParent, "vendor=1")
	if id := telemetry.TraceID(ctx); id != agentTrace {
		t.Errorf("trace %s", id)
	}
	call, approved := telemetry.CallOf(ctx), tr.NewCall()
	tr.Called(call, nil, telemetry.Operation{Method: "tools/call", Begun: begun})
	tr.Served(ctx, telemetry.Operation{Method: "tools/call", Begun: begun})
	tr.Called(approved, call, telemetry.Operation{Method: "tools/call", Begun: begun})
	end()
	all := r.Spans(t, 3)
	client, server, later := all[0], all[1], all[2]
	hex := func(b []byte) string { return fmt.Sprintf("%x", b) }
	if hex(server.TraceId) != agentTrace || hex(server.ParentSpanId) != agentSpan || server.TraceState != "vendor=1" {
		t.Errorf("SERVER: %v", server)
	}
	if want := "00-" + agentTrace + "-" + hex(client.SpanId) + "-01"; hex(client.ParentSpanId) != hex(server.SpanId) || call.Parent != want || call.State != "vendor=1" {
		t.Errorf("CLIENT: %v; the call carries %+v", client, call)
	}
	if want := "00-" + hex(later.TraceId) + "-" + hex(later.SpanId) + "-01"; approved.Parent != want || hex(later.TraceId) == agentTrace || len(later.ParentSpanId) > 0 {
		t.Errorf("approved: %v; the call carries %+v", later, approved)
	}
	if l := later.Links; len(l) != 1 || hex(l[0].TraceId) != agentTrace || hex(l[0].SpanId) != hex(server.SpanId) {
		t.Errorf("links: %v", later.Links)
	}
}

// TestTheOperatorSamples: the flag of the agent decides nothing, and neither does the id of its trace.
func TestTheOperatorSamples(t *testing.T) {
	for _, tc := range []struct {
		name, flags string
		sample      float64
		want        int
	}{{"agent-wants-none", "00", 1, 1}, {"agent-wants-all", "01", 0, 0}, {"unknown-flags", "ff", 1, 1}} {
		t.Run(tc.name, func(t *testing.T) {
			r := otlptest.New(t)
			tr, end := tracer(t, telemetry.OTLP{Endpoint: r.URL, Sample: tc.sample})
			for _, id := range []string{agentTrace, strings.Repeat("f", 32), strings.Repeat("0", 31) + "1"} {
				ctx := tr.Begin(t.Context(), "00-"+id+"-"+agentSpan+"-"+tc.flags, "")
				tr.Served(ctx, telemetry.Operation{Method: "ping", Begun: begun})
				if c := telemetry.CallOf(ctx); !strings.HasSuffix(c.Parent, fmt.Sprintf("-0%d", tc.want)) {
					t.Errorf("the call carries %s", c.Parent)
				}
			}
			end()
			if all := r.Spans(t, 3*tc.want); len(all) != 3*tc.want {
				t.Errorf("%d spans", len(all))
			}
		})
	}
}

// TestHostileParents: a trace context that is not valid is ignored, and what the call carries is always valid.
func TestHostileParents(t *testing.T) {
	for _, tc := range []struct {
		name, parent, state string
		same                bool   // the trace is the agent's
		want                string // tracestate
	}{
		{"none", "", "", false, ""},
		{"state-without-parent", "", "a=1", false, ""},
		{"upper-case", strings.ToUpper(agentParent), "", false, ""},
		{"later-version-of-one-megabyte", "01" + agentParent[2:] + "-" + strings.Repeat("0", 1<<20), "", false, ""},
		{"line-end", agentParent + "\r\nX: y", "", false, ""},
		{"good-state", agentParent, "a=1,b@c=2", true, "a=1,b@c=2"},
		{"bad-state", agentParent, "a=1,a=2", true, ""},
		{"state-too-long", agentParent, "a=" + strings.Repeat("1", 255) + ",b=" + strings.Repeat("1", 254), true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := otlptest.New(t)
			tr, end := tracer(t, telemetry.OTLP{Endpoint: r.URL, Sample: 1})
			ctx := tr.Begin(t.Context(), tc.parent, tc.state)
			tr.Served(ctx, telemetry.Operation{Method: "ping", Begun: begun})
			end()
			s, c := r.Spans(t, 1)[0], telemetry.CallOf(ctx)
			if same := fmt.Sprintf("%x", s.TraceId) == agentTrace; same != tc.same || same != (len(s.ParentSpanId) > 0) || s.TraceState != tc.want {
				t.Errorf("span %v", s)
			}
			if len(c.Parent) != len(agentParent) || c.State != tc.want || !strings.HasPrefix(c.Parent, fmt.Sprintf("00-%x-", s.TraceId)) {
				t.Errorf("the call carries %+v", c)
			}
		})
	}
}

// TestEnvironmentDecidesNothing: the variables of OpenTelemetry's libraries redirect nothing, and change no header, limit or sampler.
func TestEnvironmentDecidesNothing(t *testing.T) {
	away := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("spans went elsewhere") }))
	defer away.Close()
	tls := httptest.NewTLSServer(nil)
	tls.Close()
	certificate := filepath.Join(t.TempDir(), "ca.pem")
	check.NoError(t, os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}), 0o600))
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": away.URL, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": away.URL + "/x", "OTEL_EXPORTER_OTLP_HEADERS": "x-added=1",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x-added=1", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "gzip",
		"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
		"OTEL_EXPORTER_OTLP_INSECURE": "false", "OTEL_EXPORTER_OTLP_CERTIFICATE": certificate, "OTEL_TRACES_SAMPLER": "always_off", "OTEL_SDK_DISABLED": "true",
		"OTEL_BSP_MAX_QUEUE_SIZE": "1", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "1", "OTEL_BSP_SCHEDULE_DELAY": "3600000", "OTEL_BSP_EXPORT_TIMEOUT": "1",
		"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "1", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "1", "OTEL_SPAN_LINK_COUNT_LIMIT": "0", "OTEL_SERVICE_NAME": "other",
	} {
		t.Setenv(name, value)
	}
	r := otlptest.New(t)
	tr, end := tracer(t, telemetry.OTLP{Endpoint: r.URL + "/", Headers: map[string]string{"Authorization": "Bearer x"}, Sample: 1})
	for range 100 {
		tr.Called(tr.NewCall(), &telemetry.Context{Parent: agentParent, Span: agentSpan}, telemetry.Operation{Method: "tools/call", Server: "kb", Tool: "echo", Begun: begun})
	}
	end()
	all := r.Spans(t, 100)
	if len(all) != 100 || len(all[0].Links) != 1 || otlptest.Attributes(all[0])["gen_ai.tool.name"] != "echo" {
		t.Errorf("%d spans, the first: %v", len(all), all[0])
	}
	if h := r.Header(); h.Get("Authorization") != "Bearer x" || h.Get("X-Added") != "" {
		t.Errorf("headers %v", h)
	}
	if r.Contains("other") {
		t.Error("the service has another name")
	}
}

// TestBadCollectors: a collector that hangs, fails or redirects blocks nobody, gets nothing twice elsewhere, and is reported once.
func TestBadCollectors(t *testing.T) {
	const word = "a-secret-of-many-letters" // where a line is cut, a part of it could be left
	mask := func(text string) string { return strings.ReplaceAll(text, word, "[secret]") }
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer elsewhere.Close()
	hung := make(chan struct{})
	defer close(hung)
	for _, tc := range []struct {
		name   string
		answer http.HandlerFunc
		report string // empty: the shutdown comes first
	}{
		{"hangs", func(_ http.ResponseWriter, q *http.Request) {
			select {
			case <-hung:
			case <-q.Context().Done():
			}
		}, ""},
		{"echoes-a-secret", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, strings.Repeat(" "+word, 100), 400) }, "spans cannot be exported"},
		{"redirects", func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, elsewhere.URL+"/v1/traces", http.StatusTemporaryRedirect)
		}, "spans cannot be exported"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := httptest.NewServer(tc.answer)
			defer s.CloseClientConnections()
			var mu sync.Mutex
			var lines []string
			tr, err := telemetry.NewTracer(telemetry.OTLP{Endpoint: s.URL, Sample: 1}, "v1", mask, func(line string) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, line)
			})
			check.NoError(t, err)
			const many = 20_000 // more than the queue has places; none of them waits
			for range many {
				tr.Called(tr.NewCall(), nil, telemetry.Operation{Method: "tools/call", Begun: begun})
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_ = tr.Shutdown(ctx) // in time, or the test ends with its own timeout
			mu.Lock()
			defer mu.Unlock()
			if tc.report == "" {
				return
			}
			if len(lines) != 1 || !strings.HasPrefix(lines[0], tc.report) || len(lines[0]) > 500 || strings.Contains(lines[0], word[:8]) {
				t.Errorf("reports: %.600q", lines)
			}
		})
	}
}

// TestNothingIsTracedWithoutATracer: what has no tracer may trace.
func TestNothingIsTracedWithoutATracer(t *testing.T) {
	var tr *telemetry.Tracer
	ctx := tr.Begin(t.Context(), agentParent, "")
	tr.Served(ctx, telemetry.Operation{})
	tr.Called(tr.NewCall(), nil, telemetry.Operation{})
	if telemetry.CallOf(ctx) != nil || telemetry.TraceID(ctx) != "" || tr.Shutdown(ctx) != nil {
		t.Error("there is a trace")
	}
}
