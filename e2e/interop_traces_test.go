package e2e

import (
	"encoding/hex"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"

	"pgfsm/internal/telemetry/otlptest"
	"pgfsm/internal/test/mcptest"
)

// TestInteropOneTrace: a TypeScript client, the gateway and a server are one trace. The server's parent is the gateway's CLIENT span, whose parent is the
// gateway's SERVER span, whose parent is the client's.
func TestInteropOneTrace(t *testing.T) {
	in := interopTools(t)
	for _, c := range []struct{ name, script, mode string }{
		{"sdk-v1", "sdk-v1", "http"}, {"sdk-v2-legacy", "sdk-v2", "legacy"}, {"sdk-v2-auto", "sdk-v2", "auto"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := otlptest.New(t)
			p := mcptest.New(t, mcptest.But("tools/list", mcptest.TwoTools))
			metas := metas(p)
			s := serve(t, gatewayFolder(t, p, "serve: {record: none}\n"+exporting(r, 100)))
			report := in.drive(t, c.script, c.mode, clientOrder{URL: s.mcp, Calls: []clientCall{{
				Name: "echo__look", Arguments: jsontext.Value(`{"n":1}`), Meta: jsontext.Value(`{"traceparent":"` + agentParent + `","tracestate":"ts=1"}`),
			}}})
			if len(report.Answers) != 1 || report.Answers[0].Text != "hi" {
				t.Fatalf("%+v\n%s", report, s.stderr)
			}
			s.stop(t, exitYes)
			var server, client *traces.Span
			for _, span := range r.Spans(t, 3) {
				switch {
				case span.Name != "tools/call look":
				case span.Kind == traces.Span_SPAN_KIND_SERVER:
					server = span
				default:
					client = span
				}
			}
			if server == nil || client == nil {
				t.Fatal("a span of the call is missing")
			}
			id, got := hex.EncodeToString, <-metas
			if id(server.TraceId) != agentTrace || id(server.ParentSpanId) != agentParent[36:52] || id(client.ParentSpanId) != id(server.SpanId) {
				t.Errorf("SERVER %v, CLIENT %v", server, client)
			}
			if want := "00-" + agentTrace + "-" + id(client.SpanId) + "-01"; member(got, "traceparent") != want || member(got, "tracestate") != "ts=1" {
				t.Errorf("the server got %s, want %s", got, want)
			}
		})
	}
}
