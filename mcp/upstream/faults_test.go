package upstream

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgfsm/policy/secret"
)

// selfReference is the params of an elicitation that kills a client which resolves its schema.
const selfReference = `{"message":"m","requestedSchema":{"allOf":[{"$ref":"#"}]}}`

// echoed is a secret that a quoted reason spells differently.
const echoed = `s3cret"tok\en`

// The scripts of the fault matrix go wrong at the call.
func init() {
	fault := func(lines ...string) func() script {
		return func() script {
			return on("tools/call", func(w spoken) []string {
				out := []string{}
				for _, line := range lines {
					out = append(out, strings.ReplaceAll(line, "ID", w.id))
				}
				return out
			})
		}
	}
	maps.Copy(roles, map[string]func() script{
		"hangs-at-call":      func() script { return on("tools/call", silence) },
		"dies-in-its-answer": fault(cutOff + `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"ha`),
		"100-MiB":            fault(flood + "ID"),
		"not-json":           fault(`hello`),
		"not-utf-8":          fault("{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[],\"broken\":\"\xff\"}}"),
		"version-1.0":        fault(`{"jsonrpc":"1.0","id":ID,"result":{}}`),
		"result-twice":       fault(`{"jsonrpc":"2.0","id":ID,"result":{},"result":{}}`),
		"result-and-error":   fault(`{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":""}}`),
		"batch":              fault(`[{"jsonrpc":"2.0","id":ID,"result":{}}]`),
		"text-behind":        fault(`{"jsonrpc":"2.0","id":ID,"result":{}} {}`),
		"id-as-text":         fault(`{"jsonrpc":"2.0","id":"ID","result":{}}`),
		"echoes-the-secret": fault(`{"jsonrpc":"2.0","id":ID,"error":{"code":7,"message":` +
			`"no entry for s3cret\"tok\\en or Bearer s3cret\"tok\\en"}}`),
		"elicits": fault(`{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":`+selfReference+`}`,
			untilRefused, result("ID", oneResult)),
		"samples": fault(`{"jsonrpc":"2.0","id":8,"method":"sampling/createMessage","params":{"messages":[]}}`,
			untilRefused, result("ID", oneResult)),
		"pings": fault(pingAsk, untilAnswered, result("ID", oneResult)),
	})
}

// Every way in which a call goes wrong, over every transport.
func TestFaultsOfACall(t *testing.T) {
	const broken = "broken" // a connection: the process died, or the server cannot be reached
	tests := []struct {
		role, effect, code string
		json               bool // over HTTP also as a body of JSON
	}{
		{"hangs-at-call", EffectUnknown, CodeTimeout, true},
		{"dies-in-its-answer", EffectUnknown, broken, true},
		{"100-MiB", EffectDone, CodeResult, true},
		{"not-json", EffectUnknown, CodeProtocol, true},
		{"version-1.0", EffectUnknown, CodeProtocol, true},
		{"result-twice", EffectUnknown, CodeProtocol, true},
		{"result-and-error", EffectUnknown, CodeProtocol, true},
		{"batch", EffectUnknown, CodeProtocol, true},
		{"text-behind", EffectUnknown, CodeProtocol, true},
		{"id-as-text", EffectUnknown, CodeProtocol, true},
		{"echoes-the-secret", EffectUnknown, CodeRPC, true},
		{"elicits", EffectDone, "", false},
		{"samples", EffectDone, "", false},
		{"pings", EffectDone, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.role, func(t *testing.T) {
			judge := func(t *testing.T, s Server) {
				known := Header{"x-key", "Bearer " + echoed}
				if s.Type == TypeStdio {
					s.Env = append(s.Env, known)
				} else {
					s.Headers = []Header{known}
				}
				try := func(timeout time.Duration) Returned {
					u := upstreams(t, Limits{ResultBytes: 1 << 20, CatalogBytes: 1 << 20}, patient(timeout, s))
					listed(t, u)
					return call(t.Context(), u, s.Name, `{}`)
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

// allocated is how many bytes this process has ever allocated. A server in the same process is counted too; it
// allocates little.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// A redirect of the call is not followed, on any HTTP transport and to any place: what it leads to sees nothing, not
// even the credentials.
func TestARedirectOfTheCallIsNotFollowed(t *testing.T) {
	for _, kind := range []string{TypeHTTP, TypeSSE} {
		for _, code := range []int{301, 302, 303, 307, 308} {
			t.Run(fmt.Sprintf("%s-%d", kind, code), func(t *testing.T) {
				noLeak(t)
				elsewhere := serveScript(t, honest, false)
				var s Server
				if kind == TypeSSE {
					s = serveSSE(t, honest)
				} else {
					s = serveScript(t, honest, false).server()
				}
				var calls int
				front := inFrontOf(t, s.URL, func(rw http.ResponseWriter, body string) bool {
					if !strings.Contains(body, methodCall) {
						return false
					}
					calls++
					rw.Header().Set("Location", elsewhere.URL+"/mcp")
					rw.WriteHeader(code)
					return true
				})
				s.URL = front + s.URL[strings.LastIndexByte(s.URL, '/'):]
				s.Headers = []Header{{"Authorization", "Bearer hush-hush"}}
				u := upstreams(t, Limits{}, s)
				listed(t, u)
				r := call(t.Context(), u, s.Name, `{}`)
				if r.Effect != EffectUnknown || r.Code != CodeRedirect || strings.Contains(r.Reason, "hush-hush") {
					t.Errorf("Call() = %+v, want %s, unknown", r, CodeRedirect)
				}
				if n := len(elsewhere.seen); n != 0 || calls != 1 {
					t.Errorf("%d requests elsewhere and %d calls, want none and 1", n, calls)
				}
			})
		}
	}
}

// inFrontOf serves what target serves, except for what is taken.
func inFrontOf(t *testing.T, target string, take func(rw http.ResponseWriter, body string) bool) string {
	t.Helper()
	base := target[:strings.LastIndexByte(target, '/')]
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body := readAll(r)
		if take(rw, body) {
			return
		}
		req, err := http.NewRequestWithContext(r.Context(), r.Method, base+r.URL.Path, strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		req.Header = r.Header
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		maps.Copy(rw.Header(), resp.Header)
		rw.WriteHeader(resp.StatusCode)
		buf := make([]byte, 4096)
		for err == nil {
			var n int
			n, err = resp.Body.Read(buf)
			rw.Write(buf[:n])
			http.NewResponseController(rw).Flush()
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// A second endpoint, named during the call and on another origin, is not believed.
func TestASecondEndpointIsIgnored(t *testing.T) {
	noLeak(t)
	elsewhere := serveScript(t, honest, false)
	move := "event: endpoint\ndata: " + elsewhere.URL + "/mcp\n\n"
	s := serveSSE(t, on("tools/call", func(w spoken) []string {
		// The line ends the event that it stands in, and begins another.
		return []string{`{"jsonrpc":"2.0","method":"notifications/message"}` + "\n\n" + move, result(w.id, oneResult)}
	}))
	u := upstreams(t, Limits{}, s)
	listed(t, u)
	for range 2 {
		if r := call(t.Context(), u, "sse", `{}`); r.Effect != EffectDone {
			t.Errorf("Call() = %+v, want done", r)
		}
	}
	if n := len(elsewhere.seen); n != 0 {
		t.Errorf("%d requests at the other origin, want none", n)
	}
}
