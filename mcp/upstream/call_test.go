package upstream

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Every row of the package comment's table of effects over HTTP.
func TestEffects(t *testing.T) {
	const limit = 1000
	large := func(n int) func(w spoken) []string {
		return func(w spoken) []string { return []string{result(w.id, `"`+strings.Repeat("x", n-2)+`"`)} }
	}
	tests := []struct {
		name   string
		answer func(w spoken) []string
		effect string
		code   string
		onWire int
	}{
		{"a-result", says(result("ID", oneResult)), EffectDone, "", 1},
		{"a-result-that-is-an-error", says(result("ID", `{"content":[],"isError":true}`)), EffectDone, "", 1},
		{"a-result-null", says(result("ID", `null`)), EffectDone, "", 1},
		{"a-result-with-duplicates", says(result("ID", `{"content":[],"content":[ ]}`)), EffectDone, "", 1},
		{"a-result-that-asks-for-input", says(result("ID",
			`{"resultType":"input_required","inputRequests":{"a":{"method":"x"}}}`)), EffectDone, "", 1},
		{"a-task", says(result("ID", `{"resultType":"task","taskId":"7","status":"working"}`)), EffectDone, "", 1},
		{"at-the-size-limit", large(limit), EffectDone, "", 1},
		{"one-byte-past", large(limit + 1), EffectDone, CodeResult, 1},
		{"message-too-large", large(DefaultCatalogBytes + envelopeSlack + 1), EffectDone, CodeResult, 1},
		{"error-method-not-found", says(failure("ID", -32601)), EffectUnknown, CodeRPC, 1},
		{"error-invalid-params", says(failure("ID", -32602)), EffectUnknown, CodeRPC, 1},
		{"error-url-elicitation", says(failure("ID", -32042)), EffectUnknown, CodeRPC, 1},
		{"error-of-its-own", says(failure("ID", 7)), EffectUnknown, CodeRPC, 1},
		{"no-answer", silence, EffectUnknown, CodeTimeout, 1},
		{"not-json", says(`hello`), EffectUnknown, CodeProtocol, 1},
		{"another-id", says(result("99", oneResult)), EffectUnknown, CodeProtocol, 1},
		{"two-results", says(`{"jsonrpc":"2.0","id":ID,"result":1,"result":2}`), EffectUnknown, CodeProtocol, 1},
	}
	for _, stream := range []bool{false, true} {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("%s/stream-%t", tt.name, stream), func(t *testing.T) {
				noLeak(t)
				srv := serveScript(t, on("tools/call", tt.answer), stream)
				try := func(timeout time.Duration) Returned {
					u := upstreams(t, Limits{ResultBytes: limit}, patient(timeout, srv.server()))
					listed(t, u)
					return call(t.Context(), u, "web", `{}`)
				}
				var r Returned
				if tt.code == CodeTimeout {
					r = timedOut(t, try)
				} else {
					r = try(DefaultTimeout)
				}
				if r.Effect != tt.effect || r.Code != tt.code {
					t.Errorf("Call() = %+v, want effect %s, code %q", r, tt.effect, tt.code)
				}
				if (r.Code == "") != (r.Result != nil) || (r.Code == "") != (r.Reason == "") {
					t.Errorf("Call() = %+v, want a result, or a code and a reason", r)
				}
				if (r.RPCError != nil) != (tt.code == CodeRPC) {
					t.Errorf("RPCError = %v, want one only with %s", r.RPCError, CodeRPC)
				}
				if n := srv.count(methodCall); n != tt.onWire {
					t.Errorf("%d calls on the wire, want %d", n, tt.onWire)
				}
			})
		}
	}
}

func TestResultsAreRaw(t *testing.T) {
	for _, raw := range []string{
		`{"content":[{"type":"hologram","x":9007199254740993}],"structuredContent":{"n":1e400,"d":1.0},"a":1,"u":"\/"}`,
		`{ "content" : [ ] , "_meta" : { } }`,
		"{\"content\":[],\"broken\":\"\xff\"}",
	} {
		for _, stream := range []bool{false, true} {
			srv := serveScript(t, on("tools/call", func(w spoken) []string { return []string{result(w.id, raw)} }), stream)
			u := upstreams(t, Limits{}, srv.server())
			listed(t, u)
			if r := call(t.Context(), u, "web", `{}`); string(r.Result) != raw || r.Effect != EffectDone {
				t.Errorf("Call() = %q %+v, want the bytes %q", r.Result, r, raw)
			}
		}
	}
}

func TestCallsThatAreNotSent(t *testing.T) {
	srv := serveScript(t, honest, false)
	u := upstreams(t, Limits{}, srv.server())
	valid := Call{Server: "web", Tool: "echo", Arguments: []byte(`{"a":1}`), RunID: "r"}
	if r := u.Call(t.Context(), valid); r.Code != CodeUnreachable || r.Effect != EffectNotSent {
		t.Errorf("Call() before List() = %+v, want %s, not_sent", r, CodeUnreachable)
	}
	listed(t, u)
	tests := []struct {
		name   string
		change func(c *Call)
		code   string
	}{
		{"zero-call", func(c *Call) { *c = Call{} }, CodeInvalid},
		{"no-run", func(c *Call) { c.RunID = "" }, CodeInvalid},
		{"run-id-too-long", func(c *Call) { c.RunID = strings.Repeat("x", maxRunID+1) }, CodeInvalid},
		{"no-tool", func(c *Call) { c.Tool = "" }, CodeInvalid},
		{"no-arguments", func(c *Call) { c.Arguments = nil }, CodeInvalid},
		{"arguments-null", func(c *Call) { c.Arguments = []byte(`null`) }, CodeInvalid},
		{"arguments-array", func(c *Call) { c.Arguments = []byte(`[]`) }, CodeInvalid},
		{"arguments-with-space", func(c *Call) { c.Arguments = []byte(`{"a": 1}`) }, CodeInvalid},
		{"arguments-unordered", func(c *Call) { c.Arguments = []byte(`{"b":1,"a":1}`) }, CodeInvalid},
		{"arguments-duplicate", func(c *Call) { c.Arguments = []byte(`{"a":1,"a":1}`) }, CodeInvalid},
		{"arguments-with-text-behind", func(c *Call) { c.Arguments = []byte(`{"a":1}{}`) }, CodeInvalid},
		{"unknown-server", func(c *Call) { c.Server = "elsewhere" }, CodeUnknown},
		{"tool-name-no-header", func(c *Call) { c.Tool = "x\r\nHost: y" }, ""},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := valid
			c.RunID = fmt.Sprint("not-sent-", i)
			tt.change(&c)
			if r := u.Call(t.Context(), c); tt.code != "" && (r.Code != tt.code || r.Effect != EffectNotSent) {
				t.Errorf("Call(%+v) = %+v, want %s, not_sent", c, r, tt.code)
			}
		})
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	before := srv.count(methodCall)
	r := call(over, u, "web", `{}`)
	if r.Effect != EffectNotSent || r.Code != CodeCancelled || srv.count(methodCall) != before {
		t.Errorf("Call(cancelled) = %+v, want %s, not_sent", r, CodeCancelled)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	if r := call(t.Context(), u, "web", `{}`); r.Effect != EffectNotSent || r.Code != CodeClosed {
		t.Errorf("Call() after Close() = %+v, want %s, not_sent", r, CodeClosed)
	}
	if l := u.List(t.Context()); l[0].Status != StatusDown || l[0].Code != CodeClosed {
		t.Errorf("List() after Close() = %+v, want %s", l, CodeClosed)
	}
}

func TestCallIsCancelledInFlight(t *testing.T) {
	noLeak(t)
	arrived := make(chan struct{})
	srv := serveScript(t, on("tools/call", func(spoken) []string { close(arrived); return nil }), false)
	u := upstreams(t, Limits{}, srv.server())
	listed(t, u)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	if r := call(ctx, u, "web", `{}`); r.Effect != EffectUnknown || r.Code != CodeCancelled {
		t.Errorf("Call() = %+v, want %s, unknown", r, CodeCancelled)
	}
}

// A server that reads the call and closes the connection, or answers with a status that other clients take as a hint to
// try again, gets it once.
func TestACallIsNeverRepeated(t *testing.T) {
	closing := func(w http.ResponseWriter) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			conn.Close()
		}
	}
	status := func(code int, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "0")
			w.Header().Set("Location", "/again")
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="/meta"`)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	stream := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, text)
		}
	}
	tests := []struct {
		name   string
		answer func(http.ResponseWriter)
		code   string
	}{
		{"connection-closed", closing, CodeUnreachable},
		{"session-gone-404", status(404, ""), CodeUnreachable},
		{"unauthorized-401", status(401, ""), CodeUnreachable},
		{"unavailable-503", status(503, ""), CodeUnreachable},
		{"redirect-307", status(307, ""), CodeRedirect},
		{"redirect-308", status(308, ""), CodeRedirect},
		{"status-400-with-error", status(400, `{"jsonrpc":"2.0","id":4,"error":{"code":-32020,"message":"no"}}`), CodeRPC},
		{"accepted-202", status(202, ""), CodeProtocol},
		{"stream-ends-at-once", stream(""), CodeUnreachable},
		{"stream-to-be-resumed", stream("id: 1\nretry: 1\ndata: \n\n"), CodeUnreachable},
		{"stream-cut-in-an-event", stream("data: {\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}\n"), CodeUnreachable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			srv := serveScript(t, honest, false)
			var calls, others atomic.Int32
			inner := srv.Config.Handler
			srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost {
					others.Add(1)
				}
				body := readAll(r)
				if strings.Contains(body, `"method":"tools/call"`) {
					calls.Add(1)
					tt.answer(w)
					return
				}
				r.Body = readCloser(body)
				inner.ServeHTTP(w, r)
			})
			u := upstreams(t, Limits{}, patient(5*time.Second, srv.server()))
			listed(t, u)
			r := call(t.Context(), u, "web", `{}`)
			if r.Effect != EffectUnknown || r.Code != tt.code {
				t.Errorf("Call() = %+v, want %s, unknown", r, tt.code)
			}
			if n := calls.Load(); n != 1 {
				t.Errorf("the server got %d calls, want 1", n)
			}
			if n := others.Load(); n != 0 {
				t.Errorf("the server got %d requests other than POST, want none", n)
			}
		})
	}
}

// The server's address is gone when the call is made: the connection for it cannot be opened, so it was not sent.
func TestACallWithoutConnectionIsNotSent(t *testing.T) {
	srv := serveScript(t, honest, false)
	u := upstreams(t, Limits{}, srv.server())
	listed(t, u)
	srv.Config.SetKeepAlivesEnabled(false)
	srv.Listener.Close()
	if r := call(t.Context(), u, "web", `{}`); r.Effect != EffectNotSent || r.Code != CodeUnreachable {
		t.Errorf("Call() = %+v, want %s, not_sent", r, CodeUnreachable)
	}
}

// A listing finds that the server was started anew and makes a new session; a call does not.
func TestAStaleSessionIsReplacedByListOnly(t *testing.T) {
	same := echoServer()
	handler := func() http.Handler {
		return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return same }, nil)
	}
	var current atomic.Pointer[http.Handler]
	h := handler()
	current.Store(&h)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*current.Load()).ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	u := upstreams(t, Limits{}, Server{Name: "s", Type: TypeHTTP, URL: srv.URL})
	listed(t, u)
	restarted := handler()
	current.Store(&restarted)
	r := call(t.Context(), u, "s", `{}`)
	if r.Effect != EffectUnknown || r.Code != CodeUnreachable || !strings.Contains(r.Reason, "404") {
		t.Errorf("Call() on a forgotten session = %+v, want %s with 404, unknown", r, CodeUnreachable)
	}
	listed(t, u)
	again := handler()
	current.Store(&again)
	listed(t, u) // the session that it had is stale again, and replaced within one listing
	if r := call(t.Context(), u, "s", `{}`); r.Effect != EffectDone {
		t.Errorf("Call() on a new session = %+v, want done", r)
	}
}

func TestProtocolHeaders(t *testing.T) {
	tests := []struct {
		name, protocol string
		stateless      bool
	}{{"legacy", "2025-11-25", false}, {"stateless", "2026-07-28", true}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			same := echoServer()
			h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return same },
				&sdk.StreamableHTTPOptions{Stateless: tt.stateless})
			var mu sync.Mutex // the request to listen comes beside the others
			seen := map[string]string{}
			names := map[string]string{}
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					body := readAll(r)
					m := readWire([]byte(body)).method
					mu.Lock()
					seen[m], names[m] = r.Header.Get(protocolHeader), r.Header.Get(nameHeader)
					mu.Unlock()
					r.Body = readCloser(body)
				}
				h.ServeHTTP(w, r)
			}))
			t.Cleanup(srv.Close)
			u := upstreams(t, Limits{}, Server{Name: "s", Type: TypeHTTP, URL: srv.URL})
			listed(t, u)
			call(t.Context(), u, "s", `{"n":1e400}`)
			mu.Lock()
			defer mu.Unlock()
			for _, m := range []string{methodList, methodCall} {
				if seen[m] != tt.protocol {
					t.Errorf("%s of %s = %q, want %q", protocolHeader, m, seen[m], tt.protocol)
				}
			}
			if want := map[bool]string{true: "echo"}[tt.stateless]; names[methodCall] != want {
				t.Errorf("%s = %q, want %q", nameHeader, names[methodCall], want)
			}
			if !tt.stateless && seen[noteInitialized] != tt.protocol {
				t.Errorf("%s of %s = %q, want %q", protocolHeader, noteInitialized, seen[noteInitialized], tt.protocol)
			}
		})
	}
}

func TestHeadersInClearTextOnlyToThisMachine(t *testing.T) {
	s := &session{server: Server{URL: "http://localhost:1", Headers: []Header{{"x-key", "k"}}}}
	s.ctx, s.cancel = context.WithCancel(t.Context())
	rt := newRoundTripper(s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := rt.dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatalf("dial(loopback) = %v, want a connection", err)
	}
	conn.Close()
	if err := rt.local(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}); err == nil || s.fault().code != CodeOrigin {
		t.Errorf("local(192.0.2.1) = %v, want %s", err, CodeOrigin)
	}
}
