package upstream

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/secret"
)

// linkCall makes a link, lists, and calls once.
func linkCall(t *testing.T, u *Upstreams, server, args string) (*Link, Returned) {
	t.Helper()
	l := mustLink(t, u, server, Peer{Protocol: older})
	return l, l.Call(t.Context(), callByListing(t, l, args), nil)
}

// Every way in which a call goes wrong, over every transport: what holds for sessions holds for links.
func TestFaultsOfACall(t *testing.T) {
	const broken = "broken" // a connection: the process died, or the server cannot be reached
	tests := []struct {
		role, effect, code string
		json               bool // over HTTP also as a body of JSON
		over               bool // the link ends, over any transport
	}{
		{"hangs-at-call", EffectUnknown, CodeTimeout, true, false},
		{"dies-in-its-answer", EffectUnknown, broken, true, false},
		{"100-MiB", EffectDone, CodeResult, true, false},
		{"not-json", EffectUnknown, CodeProtocol, true, true},
		{"batch", EffectUnknown, CodeProtocol, true, true},
		{"text-behind", EffectUnknown, CodeProtocol, true, true},
		{"echoes-the-secret", EffectUnknown, CodeRPC, true, false},
		{"elicits", EffectDone, "", false, false},
		{"samples", EffectDone, "", false, false},
		{"pings", EffectDone, "", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.role, func(t *testing.T) {
			judge := func(t *testing.T, s Server) {
				if tt.role == "batch" && s.Type == TypeStdio {
					return // it is skipped, see TestLinesThatAreNoMessages
				}
				known := Header{"x-key", "Bearer " + echoed}
				if s.Type == TypeStdio {
					s.Env = append(s.Env, known)
				} else {
					s.Headers = []Header{known}
				}
				var l *Link
				try := func(timeout time.Duration) (r Returned) {
					u := upstreams(t, Limits{ResultBytes: 1 << 20, CatalogBytes: 1 << 20}, withTimeout(timeout, s))
					l, r = linkCall(t, u, s.Name, `{}`)
					return r
				}
				before := allocated()
				var r Returned
				if tt.code == CodeTimeout {
					r = timedOut(t, try)
				} else {
					r = try(DefaultTimeout)
				}
				want := tt.code
				if want == broken {
					want = map[bool]string{true: CodeDied, false: CodeUnreachable}[s.Type == TypeStdio]
				}
				if r.Effect != tt.effect || r.Code != want {
					t.Errorf("Call() = %+v, want effect %s, code %q", r, tt.effect, want)
				}
				if (r.Code == "") != (string(r.Result) == oneResult) || (r.Code == "") != (r.Reason == "") {
					t.Errorf("Call() = %+v with the result %s, want the whole result, or a code and a reason", r, r.Result)
				}
				if strings.Contains(r.Reason, "s3cret") || tt.code == CodeRPC && !strings.Contains(r.Reason, secret.Mask) {
					t.Errorf("Reason = %q, want the secret masked", r.Reason)
				}
				if used := allocated() - before; tt.code == CodeResult && used > 32<<20 {
					t.Errorf("%d bytes were allocated for an answer of 100 MiB, want no more than the limits need", used)
				}
				if tt.over && (l.Err() == nil || l.ctx.Err() == nil) {
					t.Error("the link goes on, want it over")
				}
				if l.Err() == nil && s.Type == TypeHTTP { // and if it goes on, it works
					if _, err := l.Listing(t.Context(), 0); err != nil {
						t.Errorf("Listing() after the fault = %v", err)
					}
				}
			}
			overEach(t, tt.role, judge)
			if tt.json {
				t.Run("http-json", func(t *testing.T) {
					noLeak(t)
					judge(t, serveScript(t, roles[tt.role](), false).server())
				})
			}
		})
	}
}

func TestResultsAreRaw(t *testing.T) {
	for _, raw := range []string{
		`{"content":[{"type":"hologram","x":9007199254740993}],"structuredContent":{"n":1e400,"d":1.0},"a":1,"u":"\/"}`,
		`{ "content" : [ ] , "_meta" : { } }`,
		`{"content":[],"half":"\ud800"}`,
		`{"content":[],"content":[ ]}`, `null`, `{"content":[],"isError":true}`,
		`{"resultType":"input_required","inputRequests":{"a":{"method":"x"}}}`,
		`{"resultType":"task","taskId":"7","status":"working"}`,
	} {
		for _, stream := range []bool{false, true} {
			srv := serveScript(t, answering("tools/call", func(w spoken) []string { return []string{result(w.id, raw)} }), stream)
			u := upstreams(t, Limits{}, srv.server())
			if _, r := linkCall(t, u, "web", `{}`); string(r.Result) != raw || r.Effect != EffectDone {
				t.Errorf("Call() = %q %+v, want the bytes %q", r.Result, r, raw)
			}
		}
	}
}

func TestResultLimitIsExact(t *testing.T) {
	const limit = 1000
	for size, code := range map[int]string{limit: "", limit + 1: CodeResult} { // in any order
		srv := serveScript(t, answering("tools/call", answerWith(result("ID", `"`+strings.Repeat("x", size-2)+`"`))), false)
		if _, r := linkCall(t, upstreams(t, Limits{ResultBytes: limit}, srv.server()), "web", `{}`); r.Code != code || r.Effect != EffectDone {
			t.Errorf("Call() with a result of %d bytes = %+v, want done, %q", size, r, code)
		}
	}
}

// A server that reads the call and closes the connection, or answers with a status that other clients take as a hint to
// try again, gets it once; and whether the link goes on.
func TestACallIsNeverRepeated(t *testing.T) {
	closing := func(w http.ResponseWriter, _ *http.Request) {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			conn.Close()
		}
	}
	status := func(code int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "0")
			w.Header().Set("Location", "/again")
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="/meta"`)
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	const stream = "text/event-stream"
	tests := []struct {
		name   string
		answer http.HandlerFunc
		code   string
		reason string
		over   bool
	}{
		{"connection-closed", closing, CodeUnreachable, "EOF", false},
		{"redirect-307", status(307, "", ""), CodeRedirect, "307", true},
		{"not-found-404", status(404, "", ""), CodeUnreachable, "forgotten the session", true},
		{"unauthorized-401", status(401, "", ""), CodeUnreachable, "401 Unauthorized", false},
		{"unavailable-503", status(503, "", ""), CodeUnreachable, "503 Service", false},
		{"status-400-with-error", status(400, "", `{"jsonrpc":"2.0","id":3,"error":{"code":-32020,"message":"no"}}`), CodeRPC, "-32020", false},
		{"status-400-with-anothers-error", status(400, "", `{"jsonrpc":"2.0","id":9,"error":{"code":-32020,"message":"no"}}`),
			CodeUnreachable, "400", false},
		{"accepted-202", status(202, "", ""), CodeProtocol, "no answer", false},
		{"a-page", status(200, "text/html", "<html>"), CodeUnreachable, "text/html", false},
		{"stream-ends-at-once", status(200, stream, ""), CodeUnreachable, "ended without an answer", false},
		{"stream-to-be-resumed", status(200, stream, "id: 1\nretry: 1\ndata: \n\n"), CodeUnreachable, "ended without", false},
		{"stream-cut-in-an-event", status(200, stream, "data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\n"), CodeUnreachable, "ended", false},
		{"a-request-for-an-answer", status(200, "application/json", pingAsk), CodeProtocol, "in place of the answer", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			srv := serveScript(t, honest, false)
			var others atomic.Int32
			srv.get = func(rw http.ResponseWriter, _ *http.Request) {
				others.Add(1)
				rw.WriteHeader(http.StatusMethodNotAllowed)
			}
			srv.intercept = func(rw http.ResponseWriter, r *http.Request, w spoken) bool {
				rw.Header().Set(sessionHeader, "one")
				if w.method == methodCall {
					tt.answer(rw, r)
				}
				return w.method == methodCall
			}
			u := upstreams(t, Limits{}, withTimeout(10*time.Second, srv.server()))
			l, r := linkCall(t, u, "web", `{}`)
			if r.Effect != EffectUnknown || r.Code != tt.code || !strings.Contains(r.Reason, tt.reason) {
				t.Errorf("Call() = %+v, want %s, unknown, %q", r, tt.code, tt.reason)
			}
			// The rest of a stream may be asked for, with a GET.
			if asked := tt.name == "stream-to-be-resumed"; srv.count(methodCall) != 1 || (others.Load() == 1) != asked {
				t.Errorf("the server got %d calls and %d other requests, want 1 and, for the rest, 1: %t", srv.count(methodCall), others.Load(), asked)
			}
			if over := l.Err() != nil; over != tt.over {
				t.Errorf("Err() = %v, want the link over: %t", l.Err(), tt.over)
			}
		})
	}
}

// A length is a claim: for none room is made beyond the limits, and for a large one only as it comes.
func TestALengthThatIsClaimed(t *testing.T) {
	for _, tt := range []struct {
		length int64
		code   string
		effect string
	}{
		{1 << 50, CodeResult, EffectDone},
		{int64(Limits{ResultBytes: DefaultResultBytes, CatalogBytes: DefaultCatalogBytes}.maxFrame()) + 1, CodeResult, EffectDone},
		{int64(Limits{ResultBytes: DefaultResultBytes, CatalogBytes: DefaultCatalogBytes}.maxFrame()), CodeUnreachable, EffectUnknown},
		{maxPreallocated, CodeUnreachable, EffectUnknown},
	} {
		srv := serveScript(t, honest, false)
		srv.intercept = func(rw http.ResponseWriter, _ *http.Request, w spoken) bool {
			if w.method != methodCall {
				return false
			}
			rw.Header().Set("Content-Type", "application/json")
			rw.Header().Set("Content-Length", fmt.Sprint(tt.length))
			rw.Write([]byte("{"))
			return true
		}
		u := upstreams(t, Limits{}, srv.server())
		before := allocated()
		_, r := linkCall(t, u, "web", `{}`)
		if r.Code != tt.code || r.Effect != tt.effect {
			t.Errorf("Call() answered with a length of %d = %+v, want %s, %s", tt.length, r, tt.code, tt.effect)
		}
		if used := allocated() - before; used > 2*maxPreallocated {
			t.Errorf("%d bytes were allocated for a length of %d", used, tt.length)
		}
	}
}

// The server's address is gone when the call is made, on no connection that is kept: it was not sent.
func TestACallWithoutConnectionIsNotSent(t *testing.T) {
	srv := serveScript(t, honest, false)
	u := upstreams(t, Limits{}, srv.server())
	l := mustLink(t, u, "web", Peer{Protocol: older})
	c := callByListing(t, l, `{}`)
	srv.Server.Close()
	l.up.transport.CloseIdleConnections()
	if r := l.Call(t.Context(), c, nil); r.Effect != EffectNotSent || r.Code != CodeUnreachable || !strings.Contains(r.Reason, "refused") {
		t.Errorf("Call() = %+v, want %s, not_sent", r, CodeUnreachable)
	}
}

func TestCallsThatAreNotSent(t *testing.T) {
	srv := serveScript(t, honest, false)
	u := upstreams(t, Limits{}, srv.server())
	l := mustLink(t, u, "web", Peer{Protocol: older})
	valid := callByListing(t, l, `{"a":1}`)
	tests := []struct {
		name   string
		change func(c *Call)
		code   string
	}{
		{"zero-call", func(c *Call) { *c = Call{} }, CodeInvalid},
		{"no-run", func(c *Call) { c.RunID = "" }, CodeInvalid},
		{"no-tool", func(c *Call) { c.Tool = "" }, CodeInvalid},
		{"arguments-missing", func(c *Call) { c.Arguments = canonical.Object{} }, CodeInvalid},
		{"another-server", func(c *Call) { c.Server = "elsewhere" }, CodeInvalid},
		{"no-listing", func(c *Call) { c.Listing = 0 }, CodeChanged},
		{"extra-of-another-name", func(c *Call) { c.Extra = []byte(`{"task":{}}`) }, CodeInvalid},
		{"extra-that-are-arguments", func(c *Call) { c.Extra = []byte(`{"arguments":{"a":2}}`) }, CodeInvalid},
		{"extra-not-canonical", func(c *Call) { c.Extra = []byte(`{"requestState":"x","inputResponses":{}}`) }, CodeInvalid},
		{"extra-no-object", func(c *Call) { c.Extra = []byte(`[]`) }, CodeInvalid},
		{"meta-no-object", func(c *Call) { c.Meta = []byte(`7`) }, CodeInvalid},
		{"meta-with-duplicates", func(c *Call) { c.Meta = []byte(`{"a":1,"a":2}`) }, CodeInvalid},
		{"meta-with-duplicates-inside", func(c *Call) { c.Meta = []byte(`{"a":{"b":1,"b":2}}`) }, CodeInvalid},
		{"meta-of-another-hop", func(c *Call) { c.Meta = []byte(`{"io.modelcontextprotocol/subscriptionId":1}`) }, CodeInvalid},
		{"meta-with-text-behind", func(c *Call) { c.Meta = []byte(`{}}`) }, CodeInvalid},
		{"token-that-is-none", func(c *Call) { c.Meta = []byte(`{"progressToken":{}}`) }, CodeInvalid},
		{"header-of-another-name", func(c *Call) { c.Header = map[string]string{"Authorization": "x"} }, CodeInvalid},
		{"header-without-a-name", func(c *Call) { c.Header = map[string]string{"Mcp-Param-": "x"} }, CodeInvalid},
		{"header-that-is-no-token", func(c *Call) { c.Header = map[string]string{"Mcp-Param-a b": "x"} }, CodeInvalid},
		{"too-many-headers", func(c *Call) {
			c.Header = map[string]string{}
			for i := range maxHeaders + 1 {
				c.Header[fmt.Sprint(paramHeader, i)] = "x"
			}
		}, CodeInvalid},
		{"header-with-a-line-break", func(c *Call) { c.Header = map[string]string{"Mcp-Param-A": "x\r\ny: z"} }, CodeUnreachable},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := valid
			c.RunID = fmt.Sprint("link-not-sent-", i)
			tt.change(&c)
			if r := l.Call(t.Context(), c, nil); r.Code != tt.code || r.Effect != EffectNotSent {
				t.Errorf("Call(%+v) = %+v, want %s, not_sent", c, r, tt.code)
			}
		})
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if r := l.Call(over, callByListing(t, l, `{}`), nil); r.Effect != EffectNotSent || r.Code != CodeCancelled {
		t.Errorf("Call(cancelled) = %+v, want %s, not_sent", r, CodeCancelled)
	}
	if n := srv.count(methodCall); n != 0 {
		t.Errorf("%d calls on the wire, want none", n)
	}
	again := callByListing(t, l, `{}`)
	if r := l.Call(t.Context(), again, nil); r.Effect != EffectDone {
		t.Fatalf("Call() = %+v, want done", r)
	}
	another := mustLink(t, u, "web", Peer{Protocol: older})
	again.Listing = listingOf(t, another).Number
	if r := another.Call(t.Context(), again, nil); r.Code != CodePermit || r.Effect != EffectNotSent {
		t.Errorf("Call() of the same run over another link = %+v, want %s", r, CodePermit)
	}
	mustList(t, u)
	again.Listing = latest(u, "web")
	if r := clientOf(u).Call(t.Context(), again); r.Code != CodePermit || r.Effect != EffectNotSent || srv.count(methodCall) != 1 {
		t.Errorf("Upstreams.Call() of the same run = %+v, want %s", r, CodePermit)
	}
}

// What leaves is held to the permit, byte for byte.
func TestAMessageLeavesAgainstItsPermitOnly(t *testing.T) {
	call := Call{Tool: "echo", Arguments: object(`{"a":1}`), Extra: []byte(`{"requestState":"s"}`)}
	good := string(call.message(7, []byte(`{"x":1}`)))
	if want := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"a":1},` +
		`"requestState":"s","_meta":{"x":1}}}`; good != want {
		t.Fatalf("message() = %s, want %s", good, want)
	}
	mint := func() *permit { return newPermit([]byte(good), 1) }
	replace := func(a, b string) string {
		if !strings.Contains(good, a) {
			t.Fatalf("%q is not in the message", a)
		}
		return strings.Replace(good, a, b, 1)
	}
	spent := mint()
	spent.armed.Store(false)
	tests := []struct {
		name   string
		permit *permit
		frame  string
		passes bool
	}{
		{"exactly-the-permit", mint(), good, true},
		{"another-id", mint(), replace(":7", ":12345"), false},
		{"no-permit", nil, good, false},
		{"zero-permit", &permit{}, good, false},
		{"spent-permit", spent, good, false},
		{"another-tool", mint(), replace(`"echo"`, `"Echo"`), false},
		{"other-arguments", mint(), replace(`{"a":1}`, `{"a":2}`), false},
		{"other-meta", mint(), replace(`"x":1`, `"x":2`), false},
		{"method-again", mint(), good[:len(good)-1] + `,"method":"ping"}`, false},
		{"text-behind", mint(), good + "{}", false},
		{"cut-off", mint(), good[:len(good)-1], false},
		{"another-method", mint(), replace("tools/call", "tools/list"), false},
		{"an-honest-request-without-permit", nil, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, true},
		{"a-hidden-call", nil, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{},"method":"tools/call"}`, false},
		{"a-call-in-escapes", nil, `{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{}}`, false},
		{"a-call-as-a-notification", nil, `{"jsonrpc":"2.0","method":"tools/call","params":{}}`, false},
		{"what-cannot-be-read", nil, `{"jsonrpc":`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := &Link{}
			l.ctx, l.cancel = context.WithCancel(t.Context())
			f := l.authorizeSend([]byte(tt.frame), tt.permit)
			if (f == nil) != tt.passes || !tt.passes && (f.code != CodePermit || l.ctx.Err() == nil) {
				t.Errorf("authorizeSend(%s) = %v, want passes = %t, else the link over", tt.frame, f, tt.passes)
			}
			if tt.passes && tt.permit != nil {
				if f := l.authorizeSend([]byte(tt.frame), tt.permit); f == nil {
					t.Error("authorizeSend() passed twice")
				}
			}
		})
	}
}
