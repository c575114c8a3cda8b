package e2e

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"

	"pgfsm/internal/telemetry/otlptest"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
	"pgfsm/mcp/wire"
	"pgfsm/traces/ledger"
)

// metas has the server tell the _meta of each call. It must be called before the server's first request.
func metas(p *mcptest.Server) <-chan jsontext.Value {
	inner, all := p.Config.Handler, make(chan jsontext.Value, 100)
	p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // the server reads it again, and says what is wrong
		if m, err := wire.Read(body); err == nil && m.Method == "tools/call" {
			all <- wire.Member(m.Params, "_meta").Clone()
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		inner.ServeHTTP(w, r)
	})
	return all
}

// exporting is the configuration of a gateway that exports spans.
func exporting(r *otlptest.Receiver, percent int) string {
	return fmt.Sprintf("telemetry: {otlp: {endpoint: %q, headers: {Authorization: \"Bearer word-for-the-collector\"}, sample_percent: %d}}\n", r.URL, percent)
}

const (
	agentTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	agentParent = "00-" + agentTrace + "-00f067aa0ba902b7-00"
)

// member is a text in a _meta.
func member(meta jsontext.Value, name string) string {
	text, err := wire.Text(wire.Member(meta, name))
	if err != nil {
		return ""
	}
	return text
}

// spansBy are the spans of a kind, in the order of their starts.
func spansBy(all []*traces.Span, kind traces.Span_SpanKind) (of []*traces.Span) {
	for _, s := range all {
		if s.Kind == kind {
			of = append(of, s)
		}
	}
	slices.SortFunc(of, func(a, b *traces.Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
	return of
}

// TestServeTraces: agent, gateway and server are one trace; an approved call is a trace of its own that links to its request. Ledger and log name the traces,
// the record replays, and nothing that was sent is in a span.
func TestServeTraces(t *testing.T) {
	t.Parallel()
	r := otlptest.New(t)
	o := &office{u: mcptest.New(t, mcptest.Except("tools/list", mcptest.TwoTools))}
	metas := metas(o.u)
	o.dir = gatewayFolder(t, o.u, inOffice+exporting(r, 100))
	o.writes(t, "policy.yaml", "version: 1\npolicies:\n  - {id: people, match: {tool: look}, when: args.n > 1000000000, effect: pending, expires: 1h}\n"+
		"  - {id: rest, match: {tool: look}, effect: allow}\n")
	o.served = serve(t, o.dir, "--verbose")
	o.bob, o.ci = makeToken(t, o.config, "approver", "bob"), makeToken(t, o.config, "agent", "ci")
	a := o.agent("/mcp", o.ci)
	_, body := a.post(`{"jsonrpc":"2.0","id":"request-1","method":"tools/call","params":{"name":"echo__look","arguments":{"n":987654321},"_meta":` +
		`{"tracestate":"vendor=1","baggage":"k=v","traceparent":"` + agentParent + `"}}}`)
	if got := read(t, body); got.code() != "hi" {
		t.Fatalf("call: %s\n%s", got.Raw, o.stderr)
	}
	called := <-metas
	a.call("echo__secret-987654321", `{}`)
	run := o.held(t, a, `{"n":1987654321}`)
	o.decide(t, "approve", run, o.bob)
	o.ended(t, run, "executed", "")
	approved := <-metas
	o.stop(t, exitYes) // the shutdown exports what is left

	all := r.Spans(t, 6)
	server, client := spansBy(all, traces.Span_SPAN_KIND_SERVER), spansBy(all, traces.Span_SPAN_KIND_CLIENT)
	if len(server) != 4 || len(client) != 2 {
		t.Fatalf("%d SERVER and %d CLIENT spans", len(server), len(client))
	}
	request, refused, held, call, later := server[1], server[2], server[3], client[0], client[1]
	id := hex.EncodeToString
	if server[0].Name != "initialize" || id(request.TraceId) != agentTrace || id(request.ParentSpanId) != agentParent[36:52] || request.TraceState != "vendor=1" {
		t.Errorf("SERVER: %v", request)
	}
	if !bytes.Equal(call.TraceId, request.TraceId) || !bytes.Equal(call.ParentSpanId, request.SpanId) {
		t.Errorf("CLIENT: %v", call)
	}
	if want := "00-" + agentTrace + "-" + id(call.SpanId) + "-01"; member(called, "traceparent") != want || member(called, "tracestate") != "vendor=1" ||
		member(called, "baggage") != "k=v" || bytes.Count(called, []byte("traceparent")) != 1 {
		t.Errorf("the server got %s, want %s", called, want)
	}
	if len(later.ParentSpanId) > 0 || len(later.Links) != 1 ||
		!bytes.Equal(later.Links[0].SpanId, held.SpanId) || !bytes.Equal(later.Links[0].TraceId, held.TraceId) {
		t.Errorf("approved CLIENT: %v", later)
	}
	if want := "00-" + id(later.TraceId) + "-" + id(later.SpanId) + "-01"; member(approved, "traceparent") != want {
		t.Errorf("the server got %s, want %s", approved, want)
	}
	if held.EndTimeUnixNano > later.StartTimeUnixNano {
		t.Error("the span of the held call does not end with its answer")
	}
	q := recorded(t, o.dir)
	allowed := q[slices.IndexFunc(q, func(q ledger.RunRow) bool { return q.Policy == "rest" })]
	for span, run := range map[*traces.Span]string{request: allowed.RunID, call: allowed.RunID, held: run, later: run} { // in any order
		if got := otlptest.Attributes(span)["pgfsm.run"]; span.Name != "tools/call look" || got != run {
			t.Errorf("the span %q is of the run %s, want %s", span.Name, got, run)
		}
	}
	if refused.Name != "tools/call _other" {
		t.Errorf("the span of a call of an unknown tool is %q", refused.Name)
	}
	for _, secret := range []string{"987654321", "word-for-the-collector", o.ci, o.bob, a.session, "args", "People"} {
		if r.Contains(secret) {
			t.Errorf("a span has %q", secret)
		}
	}
	if r.Header().Get("Authorization") != "Bearer word-for-the-collector" {
		t.Error("the collector gets no header")
	}
	o.namesTraces(t, run, id(held.TraceId), id(later.TraceId), allowed)
}

// namesTraces: ledger and log name the traces of a held and of an allowed run, and the ledger verifies.
func (o *office) namesTraces(t *testing.T, run, held, approved string, allowed ledger.RunRow) {
	t.Helper()
	show := command(t.Context(), nil, "ledger", "show", "-c", o.config, run, "--json")
	show.Want(t, exitYes)
	if show.Member("/request/trace_id") != held || show.Member("/request/call_trace_id") != approved || allowed.Trace != agentTrace || allowed.CallTrace != "" {
		t.Errorf("ledger show: %s; the allowed call: %+v", show.Stdout, allowed)
	}
	for _, words := range []string{held, approved} {
		if shown := command(t.Context(), nil, "ledger", "show", "-c", o.config, run); !strings.Contains(shown.Stdout, words) {
			t.Errorf("ledger show lacks %s: %s", words, shown.Stdout)
		}
	}
	for _, tc := range [][2]string{{"msg=held run=" + run, held}, {"msg=call run=" + run, approved}, {"msg=call run=" + allowed.RunID, agentTrace}} {
		_, rest, found := strings.Cut(o.stderr.String(), tc[0])
		rest, _, _ = strings.Cut(rest, "\n")
		if !found || !strings.Contains(rest, " trace="+tc[1]) {
			t.Errorf("the log line %q lacks trace=%s:\n%s", tc[0], tc[1], o.stderr)
		}
	}
	command(t.Context(), nil, "ledger", "verify", "-c", o.config).Want(t, exitYes)
	for _, id := range []string{run, allowed.RunID} {
		trace := command(t.Context(), nil, "ledger", "trace", "-c", o.config, id)
		trace.Want(t, exitYes)
		file := clitest.Folder(t, "trace.json", trace.Stdout) + "/trace.json"
		command(t.Context(), nil, "replay", file).Want(t, exitYes)
	}
}
