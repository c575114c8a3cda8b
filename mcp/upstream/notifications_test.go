package upstream

import (
	"context"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// announces is honest, and says in the handshake that it tells of changes.
func announces(w spoken) []string {
	if w.method == "initialize" {
		return []string{result(w.id, strings.Replace(legacyHello, `"tools":{}`, `"tools":{"listChanged":true}`, 1))}
	}
	return honest(w)
}

// A streamFixture is a server with a standalone stream. What is sent on lines goes onto the stream, each line as it is.
type streamFixture struct {
	*scripted
	lines chan string
	gets  atomic.Int32
}

func serveStream(t *testing.T, s script) *streamFixture {
	t.Helper()
	n := &streamFixture{scripted: serveScript(t, s, false), lines: make(chan string)}
	n.get = func(rw http.ResponseWriter, r *http.Request) {
		n.gets.Add(1)
		rw.Header().Set("Content-Type", "text/event-stream")
		for {
			http.NewResponseController(rw).Flush()
			select {
			case line, more := <-n.lines:
				if !more {
					return
				}
				io.WriteString(rw, line)
			case <-r.Context().Done():
				return
			case <-n.hold:
				return
			}
		}
	}
	return n
}

func event(line string) string { return "data: " + line + "\n\n" }

// sendEvents sends the lines of one event each, and returns when they have been read and a ping behind them is answered.
func (n *streamFixture) sendEvents(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range append(lines, pingAsk) {
		select {
		case n.lines <- event(line):
		case <-time.After(10 * time.Second):
			t.Fatal("nobody reads the standalone stream")
		}
	}
	select {
	case w := <-n.answered:
		w.check(untilAnswered)
	case <-time.After(10 * time.Second):
		t.Fatal("the ping was not answered")
	}
}

// newsOver waits until the stream of a session, if it was asked for, is over.
func newsOver(t *testing.T, l *Link) {
	t.Helper()
	over := make(chan struct{})
	go func() {
		l.tasks.wg.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(10 * time.Second):
		t.Fatal("the standalone stream is not over")
	}
}

// TestServersWithoutAStream: however a server answers the request for the stream, other than lying on it, calls go on.
func TestServersWithoutAStream(t *testing.T) {
	other := serveScript(t, honest, false)
	status := func(code int, kind string) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Location", other.URL)
			rw.Header().Set("Content-Type", kind)
			rw.WriteHeader(code)
			io.WriteString(rw, "data: nonsense\n\n")
		}
	}
	for _, tt := range []struct {
		name  string
		get   http.HandlerFunc
		again bool // each listing asks
	}{
		{"not-allowed", status(405, ""), false},
		{"server-error", status(500, "text/event-stream"), false},
		{"redirect", status(307, ""), false},
		{"a-page", status(200, "text/html"), false},
		{"connection-closed", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
		{"ends-at-once", func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/event-stream")
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			srv := serveScript(t, announces, false)
			var gets atomic.Int32
			srv.get = func(rw http.ResponseWriter, r *http.Request) {
				gets.Add(1)
				tt.get(rw, r)
			}
			l := mustLink(t, upstreams(t, Limits{}, srv.server()), "web", Peer{Protocol: older})
			for i := range 2 {
				before := gets.Load()
				if _, err := l.Listing(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
				if i == 0 || tt.again { // net/http itself may repeat a GET once
					eventually(t, "the stream was asked for", func() bool { return gets.Load() > before })
				}
				newsOver(t, l)
				if r := l.Call(t.Context(), callByListing(t, l, `{}`), nil); r.Effect != EffectDone {
					t.Errorf("Call() = %+v, want done", r)
				}
			}
			if n := gets.Load(); n != 1 && !tt.again || len(other.seen) != 0 {
				t.Errorf("the stream was asked for %d times, and the other origin got %d requests, want one and none", n, len(other.seen))
			}
		})
	}
}

func TestNewsAreAskedForAgain(t *testing.T) {
	n := serveStream(t, announces)
	u := upstreams(t, Limits{}, n.server())
	mustList(t, u)
	n.sendEvents(t)
	s := clientOf(u).heldLink(u.servers[0].server.Name)
	close(n.lines)
	newsOver(t, s)
	if f := s.fault(); f != nil {
		t.Fatalf("the session ended: %v, want it to live on", f)
	}
	mustList(t, u)
	eventually(t, "it was opened again", func() bool { return n.gets.Load() == 2 })
}

// modern is a server of revision 2026-07-28 that tells of changes, with an answer of its own to who wants to listen.
func modern(listen func(w spoken) []string) func() script {
	return func() script {
		return func(w spoken) []string {
			switch w.method {
			case methodDiscover:
				return []string{result(w.id, `{"resultType":"complete","supportedVersions":["2026-07-28"],`+
					`"capabilities":{"tools":{"listChanged":true}}}`)}
			case methodListen:
				return listen(w)
			}
			return honest(w)
		}
	}
}

func init() {
	acknowledged := `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}`
	maps.Copy(roles, map[string]func() script{
		"listen-ends":    modern(func(w spoken) []string { return []string{acknowledged, result(w.id, `{}`)} }),
		"listen-refused": modern(func(w spoken) []string { return []string{failure(w.id, -32601)} }),
		"listen-hangs":   modern(silence),
	})
}

// growing is an SDK server whose tool "echo" adds a tool.
func growing() *sdk.Server {
	s := echoServer()
	s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if method == methodCall {
				s.AddTool(&sdk.Tool{Name: "more", InputSchema: map[string]any{"type": "object"}}, nil)
			}
			return next(ctx, method, req)
		}
	})
	return s
}
