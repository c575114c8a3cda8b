package upstream

import (
	"errors"
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
	r := newHTTPTarget(Server{URL: "http://localhost:1", Headers: []Header{{"x-key", "k"}}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := r.dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatalf("dial(loopback) = %v, want a connection", err)
	}
	conn.Close()
	var f *fault
	if err := r.local(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}); !errors.As(err, &f) || f.code != CodeOrigin {
		t.Errorf("local(192.0.2.1) = %v, want %s", err, CodeOrigin)
	}
}
