package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/internal/test/check"
)

// speaksOnly is a server of one kind of revisions. It refuses the handshake of the other as told.
func speaksOnly(isModern bool, refuse func(w spoken) []string) script {
	speak := script(honest)
	refused := methodDiscover
	if isModern {
		speak, refused = modern(func(w spoken) []string { return []string{failure(w.id, -32601)} })(), methodInitialize
	}
	return func(w spoken) []string {
		if w.method == refused {
			return refuse(w)
		}
		return speak(w)
	}
}

// A server that does not speak the peer's kind of revision is spoken to in its own.
func TestErasOfServers(t *testing.T) {
	refusals := map[string]func(w spoken) []string{
		"method-not-found":    func(w spoken) []string { return []string{failure(w.id, -32601)} },
		"invalid-params":      func(w spoken) []string { return []string{failure(w.id, -32602)} },
		"unsupported-version": func(w spoken) []string { return []string{failure(w.id, -32022)} },
		"no-version-in-common": func(w spoken) []string {
			if w.method == methodDiscover {
				return []string{result(w.id, `{"supportedVersions":["2025-11-25"],"capabilities":{}}`)}
			}
			return []string{failure(w.id, -32022)}
		},
	}
	for _, isModern := range []bool{false, true} {
		for _, refusal := range []string{"method-not-found", "invalid-params", "unsupported-version", "no-version-in-common"} {
			t.Run(fmt.Sprintf("modern-%t/%s", isModern, refusal), func(t *testing.T) {
				noLeak(t)
				srv := serveScript(t, speaksOnly(isModern, refusals[refusal]), false)
				u := upstreams(t, Limits{}, srv.server())
				asked, want, refused := newer, older, methodDiscover
				if isModern {
					asked, want, refused = older, newer, methodInitialize
				}
				l := mustLink(t, u, "web", Peer{Protocol: asked})
				if l.ServerInfo().Protocol != want || l.Modern() != isModern {
					t.Errorf("ServerInfo() = %+v, want revision %s", l.ServerInfo(), want)
				}
				if n := srv.count(refused); n != 1 {
					t.Errorf("%s was tried %d times, want once", refused, n)
				}
			})
		}
	}
}

// Refusals by HTTP status, and servers that refuse both.
func TestErasOfServersByStatus(t *testing.T) {
	for _, tt := range []struct {
		name, asked string
		refuse      map[string]int
		want        string // a revision, or a code
	}{
		{"discover-400", newer, map[string]int{methodDiscover: 400}, older},
		{"discover-401", newer, map[string]int{methodDiscover: 401}, older},
		{"discover-500", newer, map[string]int{methodDiscover: 500}, CodeUnreachable},
		{"discover-307", newer, map[string]int{methodDiscover: 307}, CodeRedirect},
		{"initialize-400", older, map[string]int{methodInitialize: 400}, newer},
		{"initialize-503", older, map[string]int{methodInitialize: 503}, CodeUnreachable},
		{"both-401", newer, map[string]int{methodDiscover: 401, methodInitialize: 401}, CodeUnreachable},
		{"initialized-500", older, map[string]int{noteInitialized: 500}, CodeUnreachable},
		{"account-401", newer, map[string]int{methodDiscover: 401}, CodeCredentialsRefused},
		{"account-403", newer, map[string]int{methodDiscover: 403}, CodeCredentialsRefused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			both := modern(func(w spoken) []string { return []string{failure(w.id, -32601)} })()
			srv := serveScript(t, both, false)
			srv.intercept = func(rw http.ResponseWriter, _ *http.Request, w spoken) bool {
				if code := tt.refuse[w.method]; code != 0 {
					rw.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="all"`)
					http.Error(rw, "no", code)
					return true
				}
				return false
			}
			server, peer := srv.server(), Peer{Protocol: tt.asked}
			if strings.HasPrefix(tt.name, "account") {
				server.Person, peer.Account = true, &Account{ID: "one", Header: Header{Name: "Authorization", Value: "Bearer one-0123456789"}, Refused: func(string) {}}
			}
			l, err := upstreams(t, Limits{}, server).Link(t.Context(), "web", peer)
			got := ""
			var e *LinkError
			if errors.As(err, &e) {
				got = e.Code
			} else {
				got = l.ServerInfo().Protocol
			}
			if got != tt.want {
				t.Errorf("Link() = %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

func TestChildrenThatFail(t *testing.T) {
	t.Setenv("PGFSM_SECRET_OF_OURS", "x")
	tests := []struct {
		name   string
		server func(t *testing.T) Server
		code   string
		reason string
	}{
		{"garbage-on-stdout", func(t *testing.T) Server { return childServer(t, "garbage") }, CodeProtocol, "to standard output that is not a JSON-RPC message"},
		{"dies-at-start", func(t *testing.T) Server { return childServer(t, "dies-at-start", Header{"DB_PASSWORD", "hunter22"}) },
			CodeDied, `exit status 3), its last words: \u001b[31mno database \u202eat [masked by pgfsm]`},
		{"no-such-command", func(t *testing.T) Server {
			return Server{Name: "child", Type: TypeStdio, Command: "./no-such-command"}
		}, CodeUnreachable, "does not start"},
		{"deaf", func(t *testing.T) Server {
			s := childServer(t, "deaf")
			s.ConnectTimeout = shortTimeout
			return s
		}, CodeTimeout, "connect_timeout"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			u := upstreams(t, Limits{}, tt.server(t))
			_, err := u.Link(t.Context(), "child", Peer{Protocol: newer})
			var e *LinkError
			if !errors.As(err, &e) || e.Code != tt.code || !strings.Contains(e.Reason, tt.reason) {
				t.Errorf("Link() = %v, want %s, %q", err, tt.code, tt.reason)
			}
		})
	}
	t.Run("downloads", func(t *testing.T) {
		s, reason := childServer(t, "downloads"), ""
		for s.ConnectTimeout = shortTimeout; s.ConnectTimeout < time.Minute && !strings.Contains(reason, "npm"); s.ConnectTimeout *= 4 { // it must have started
			reason = mustBeDown(t, upstreams(t, Limits{}, s), CodeTimeout)
		}
		want := fmt.Sprintf("within connect_timeout (%s); the last line on its standard error: npm warn exec this will be installed: x", s.ConnectTimeout/4)
		if !strings.HasSuffix(reason, want) {
			t.Errorf("the reason is %q, want %q", reason, want)
		}
	})
}

// A child that does not read holds nobody, and a message of which it has read a part ends the link.
func TestAChildThatStopsReading(t *testing.T) {
	noLeak(t)
	var over error
	r := timedOut(t, func(timeout time.Duration) Returned {
		u := upstreams(t, Limits{}, withTimeout(timeout, childServer(t, "stops-reading")))
		l := mustLink(t, u, "child", Peer{Protocol: older})
		r := l.Call(t.Context(), callByListing(t, l, `{"a":"`+strings.Repeat("x", 1<<20)+`"}`), nil)
		over = l.Err()
		return r
	})
	if r.Effect != EffectUnknown || r.Code != CodeTimeout || over == nil {
		t.Errorf("Call() = %+v, Err() = %v, want unknown, %s, and the link over", r, over, CodeTimeout)
	}
}

func TestLinksAreBounded(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits Limits
		server func(t *testing.T) Server
	}{
		{"http", Limits{Links: 2, ServerSessions: 1}, func(t *testing.T) Server { return serveScript(t, honest, false).server() }},
		{"stdio", Limits{ServerSessions: 2}, func(t *testing.T) Server { return childServer(t, "honest") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			s := tt.server(t)
			u := upstreams(t, tt.limits, s)
			first := mustLink(t, u, s.Name, Peer{Protocol: older})
			mustLink(t, u, s.Name, Peer{Protocol: older})
			var e *LinkError
			if _, err := u.Link(t.Context(), s.Name, Peer{Protocol: older}); !errors.As(err, &e) || e.Code != CodeLinks {
				t.Errorf("Link() one past the limit = %v, want %s", err, CodeLinks)
			}
			first.Close()
			first.Close()
			third := mustLink(t, u, s.Name, Peer{Protocol: older})
			third.fail(CodeProtocol, "it is over")
			<-third.finished // one that ends by itself makes room too
			mustLink(t, u, s.Name, Peer{Protocol: older})
		})
	}
	u := upstreams(t, Limits{}, serveScript(t, honest, false).server())
	var e *LinkError
	if _, err := u.Link(t.Context(), "nobody", Peer{}); !errors.As(err, &e) || e.Code != CodeUnknown {
		t.Errorf("Link(nobody) = %v, want %s", err, CodeUnknown)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := u.Link(ctx, "web", Peer{}); !errors.As(err, &e) || e.Code != CodeCancelled {
		t.Errorf("Link(cancelled) = %v, want %s", err, CodeCancelled)
	}
	l := mustLink(t, u, "web", Peer{Protocol: older})
	check.NoError(t, u.Close())
	if !errors.As(l.Err(), &e) || e.Code != CodeClosed {
		t.Errorf("Err() after Upstreams.Close() = %v, want %s", l.Err(), CodeClosed)
	}
	if _, err := u.Link(t.Context(), "web", Peer{}); !errors.As(err, &e) || e.Code != CodeClosed {
		t.Errorf("Link() after Close() = %v, want %s", err, CodeClosed)
	}
}

// Close ends what is under way, on every transport.
func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	overEach(t, "hangs-at-call", func(t *testing.T, s Server) {
		u := upstreams(t, Limits{}, s)
		l := mustLink(t, u, s.Name, Peer{Protocol: older})
		c := callByListing(t, l, `{}`)
		returned := make(chan Returned)
		go func() { returned <- l.Call(context.Background(), c, nil) }()
		eventually(t, "the call is under way", func() bool { return l.calls.Load() == 1 })
		l.Close()
		select {
		case r := <-returned:
			if r.Code != CodeClosed || r.Effect == EffectDone {
				t.Errorf("Call() = %+v, want %s", r, CodeClosed)
			}
		case <-time.After(10 * time.Second):
			t.Error("Call() goes on after Close()")
		}
	})
}

// A session of a server is ended by its id, when nobody listens any more.
func TestClosingALinkEndsTheSession(t *testing.T) {
	noLeak(t)
	listening, over := make(chan struct{}), make(chan struct{})
	var ended atomic.Bool
	var wrong atomic.Int32
	srv := serveScript(t, announces, false)
	srv.get = func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		http.NewResponseController(rw).Flush()
		close(listening)
		<-r.Context().Done()
		close(over)
	}
	srv.intercept = func(rw http.ResponseWriter, r *http.Request, w spoken) bool {
		rw.Header().Set(sessionHeader, "one")
		if (r.Header.Get(sessionHeader) == "one") != (w.method != methodInitialize) {
			wrong.Add(1)
		}
		return false
	}
	srv.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodDelete {
			srv.ServeHTTP(rw, r)
			return
		}
		select {
		case <-over:
			ended.Store(r.Header.Get(protocolHeader) == older && r.Header.Get(sessionHeader) == "one")
		case <-r.Context().Done():
		}
	})
	l := mustLink(t, upstreams(t, Limits{}, srv.server()), "web", Peer{Protocol: older})
	listingOf(t, l)
	<-listening
	l.Close()
	if !ended.Load() || wrong.Load() != 0 {
		t.Errorf("the session was ended: %t, %d requests with a wrong session id, want true and none", ended.Load(), wrong.Load())
	}
}

// descriptors counts what this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc")
	}
	return len(all)
}

// children counts the processes that this one has started and that are not reaped.
func children(t *testing.T) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip("no /proc")
	}
	n := 0
	for _, task := range tasks {
		b, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if err == nil {
			n += len(strings.Fields(string(b)))
		}
	}
	return n
}

// TestNothingIsLeftOfLinks: of many links over each transport, closed or cut off, nothing is left: no goroutine, descriptor or process.
func TestNothingIsLeftOfLinks(t *testing.T) {
	const links, workers = 60, 4
	var mu sync.Mutex
	var servers []*sdk.Server
	same := func(*http.Request) *sdk.Server {
		mu.Lock()
		defer mu.Unlock()
		servers = append(servers, echoServer())
		return servers[len(servers)-1]
	}
	for name, handler := range map[string]http.Handler{ // in any order
		"stdio":          nil,
		"sse":            sdk.NewSSEHandler(same, nil),
		"http-stateful":  sdk.NewStreamableHTTPHandler(same, nil),
		"http-stateless": sdk.NewStreamableHTTPHandler(same, &sdk.StreamableHTTPOptions{Stateless: true}),
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			s, stop := childServer(t, "echo"), func() {}
			fds, procs := descriptors(t), children(t)
			if handler != nil {
				// A server's own goroutines and connections must be gone too, so the server ends before the count.
				hs := httptest.NewServer(handler)
				s, stop = Server{Name: "s", Type: TypeHTTP, URL: hs.URL}, hs.Close
			}
			if name == "sse" {
				s.Type = TypeSSE
			}
			u := upstreams(t, Limits{}, s)
			var wg sync.WaitGroup
			var lost atomic.Bool
			for worker := range workers {
				wg.Go(func() {
					for i := worker; i < links; i += workers {
						l, err := u.Link(context.Background(), s.Name, Peer{Protocol: []string{older, newer}[i%2]})
						if err != nil { // net/http: the end of a request may close the connection that it has just given back, under another's request
							if !strings.Contains(err.Error(), context.Canceled.Error()) {
								t.Errorf("Link() number %d = %v", i, err)
							}
							lost.Store(true)
							continue
						}
						_, _ = l.Listing(context.Background(), time.Hour)
						if i%3 > 0 || name == "http-stateful" { // the SDK keeps a session that nobody ended
							l.Close()
						} else {
							l.fail(CodeProtocol, "it is cut off")
							<-l.finished
						}
					}
				})
			}
			wg.Wait()
			if err := u.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
			for i := 0; lost.Load() && i < len(servers); i++ { // a client that did not get the answer cannot end the session that it began
				for session := range servers[i].Sessions() {
					_ = session.Close()
				}
			}
			stop()
			eventually(t, "descriptors were closed", func() bool { return descriptors(t) <= fds+2 }) // the runtime opens some for all
			eventually(t, "children were reaped", func() bool { return children(t) <= procs })
			if n := len(u.byName[s.Name].links.links); n != 0 {
				t.Errorf("%d links are remembered, want none", n)
			}
		})
	}
}

// A second endpoint, named during the call and on another origin, is not maxPreallocated by a link either.
func TestASecondEndpointIsIgnored(t *testing.T) {
	noLeak(t)
	elsewhere := serveScript(t, honest, false)
	move := "event: endpoint\ndata: " + elsewhere.URL + "/mcp\n\n"
	s := serveSSE(t, answering("tools/call", func(w spoken) []string {
		// The line ends the event that it stands in, and begins another.
		return []string{`{"jsonrpc":"2.0","method":"notifications/message"}` + "\n\n" + move, result(w.id, oneResult)}
	}))
	u := upstreams(t, Limits{}, s)
	l := mustLink(t, u, "sse", Peer{Protocol: older})
	for range 2 {
		if r := l.Call(t.Context(), callByListing(t, l, `{}`), nil); r.Effect != EffectDone {
			t.Errorf("Call() = %+v, want done", r)
		}
	}
	if n := len(elsewhere.seen); n != 0 {
		t.Errorf("%d requests at the other origin, want none", n)
	}
}
