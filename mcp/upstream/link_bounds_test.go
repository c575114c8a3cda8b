package upstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/test/check"
	"pgfsm/mcp/wire"
)

func init() {
	const much = 3 * inboxSize
	maps.Copy(roles, map[string]func() script{
		// More notes in a call than fit into an inbox.
		"talks-much": func() script {
			return answering("tools/call", func(w spoken) []string {
				var lines []string
				for i := range much {
					lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"n":%d}}`, i))
				}
				return append(lines, result(w.id, oneResult))
			})
		},
		// The same, and each is largeMessage.
		"talks-heavily": func() script {
			return answering("tools/call", func(w spoken) []string {
				var lines []string
				for range 16 {
					lines = append(lines, `{"jsonrpc":"2.0","method":"notifications/message","params":{"x":"`+strings.Repeat("x", largeMessage)+`"}}`)
				}
				return append(lines, result(w.id, oneResult))
			})
		},
		// Requests without end, and it reads no answer.
		"pings-without-end": func() script {
			return answering("tools/call", func(spoken) []string {
				var lines []string
				for i := range 40 * maxOwed {
					lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d%s","method":"ping"}`, i, strings.Repeat("x", 200)))
				}
				return lines
			})
		},
	})
}

// TestUnaskedMessagesAreBounded: blank events and answers to requests that were never made count as much as notifications.
func TestUnaskedMessagesAreBounded(t *testing.T) {
	const most = 20
	for name, line := range map[string]string{ // in any order
		"notifications": `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`,
		"answers":       result("999", `{}`),
		"blank":         " ",
	} {
		for _, n := range []int{most, most + 1} {
			t.Run(fmt.Sprint(name, "-", n), func(t *testing.T) {
				flood := answering("tools/list", func(w spoken) []string {
					return append(slices.Repeat([]string{line}, n), result(w.id, onePage))
				})
				l := mustLink(t, upstreams(t, Limits{Unasked: most}, serveSSE(t, flood)), "sse", Peer{Protocol: older})
				_, err := l.Listing(t.Context(), 0)
				var e *LinkError
				if (err == nil) != (n == most) || err != nil && (!errors.As(err, &e) || e.Code != CodeProtocol) {
					t.Errorf("Listing() = %v", err)
				}
			})
		}
	}
}

// A server may have maxOwed requests that wait for our answer, and not one more; answered ones make room.
func TestRequestsThatWaitOnALinkAreBounded(t *testing.T) {
	l := &Link{u: &Upstreams{limits: Limits{Unasked: 10 * maxOwed}}, peer: Peer{OnMessage: func(wire.Message) {}}}
	l.ctx, l.cancel = context.WithCancel(t.Context())
	ask := func(i int) *fault {
		h, err := readIncoming([]byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"roots/list"}`, i)))
		check.NoError(t, err)
		_, pass, f := l.filterMessage(h, nil)
		if pass != (f == nil) {
			t.Errorf("filterMessage() number %d = %t, %v", i, pass, f)
		}
		return f
	}
	for i := range maxOwed {
		if f := ask(i); f != nil {
			t.Fatalf("request number %d: %v", i+1, f)
		}
	}
	if !l.requests.removeWaiting(jsontext.Value("7")) || l.requests.removeWaiting(jsontext.Value("7")) || l.requests.removeWaiting(jsontext.Value(`"8"`)) {
		t.Error("removeWaiting() is not once for each id, as it was spelled")
	}
	if f := ask(maxOwed); f != nil {
		t.Errorf("a request after an answer: %v, want room", f)
	}
	if f := ask(maxOwed + 1); f == nil || f.code != CodeProtocol || l.ctx.Err() == nil {
		t.Errorf("a request too many: %v, want %s and the link over", f, CodeProtocol)
	}
}

// waitingOn is how much waits for the one request under way. Over streamable HTTP nothing waits here.
func waitingOn(l *Link) int {
	var d *duplex
	switch c := l.conn.(type) {
	case *stdioConn:
		d = &c.duplex
	case *sseConn:
		d = &c.duplex
	default:
		return inboxSize
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.pending { // in any order: there is one
		return len(q.inbox)
	}
	return 0
}

// Who does not take what comes with its request holds the server, and loses nothing.
func TestSlowListenersLoseNothing(t *testing.T) {
	overEach(t, "talks-much", func(t *testing.T, s Server) {
		u := upstreams(t, Limits{}, s)
		l := mustLink(t, u, s.Name, Peer{Protocol: older})
		n := 0
		r := l.Call(t.Context(), callByListing(t, l, `{}`), func(m wire.Message) {
			if want := fmt.Sprintf(`{"n":%d}`, n); string(m.Params) != want {
				t.Errorf("message number %d has params %s", n, m.Params)
			}
			n++
			if n == 1 {
				eventually(t, "the inbox was full", func() bool { return waitingOn(l) == inboxSize })
			}
		})
		if r.Effect != EffectDone || n != 3*inboxSize {
			t.Errorf("Call() = %+v after %d messages, want done after %d", r, n, 3*inboxSize)
		}
	})
}

// Of messages that are largeMessage one waits, and no more.
func TestHeavyMessagesWaitAlone(t *testing.T) {
	for _, kind := range []string{TypeStdio, TypeSSE} {
		s := childServer(t, "talks-heavily")
		if kind == TypeSSE {
			s = serveSSE(t, roles["talks-heavily"]())
		}
		l := mustLink(t, upstreams(t, Limits{}, s), s.Name, Peer{Protocol: older})
		n := 0
		r := l.Call(t.Context(), callByListing(t, l, `{}`), func(wire.Message) {
			n++
			for range 1000 {
				runtime.Gosched()
			}
			if waiting := waitingOn(l); waiting > 1 {
				t.Errorf("%d largeMessage messages wait, want at most one", waiting)
			}
		})
		if r.Effect != EffectDone || n != 16 {
			t.Errorf("Call() = %+v after %d messages, want done after 16", r, n)
		}
	}
}

// A server that asks without end and takes no answer fills no memory, and hangs nobody.
func TestAServerThatReadsNoAnswer(t *testing.T) {
	noLeak(t)
	s := childServer(t, "pings-without-end")
	s.ConnectTimeout = 5 * time.Second
	u := upstreams(t, Limits{Unasked: 1 << 20}, withTimeout(30*time.Second, s))
	l := mustLink(t, u, "child", Peer{Protocol: older})
	before := allocated()
	if r := l.Call(t.Context(), callByListing(t, l, `{}`), nil); r.Effect != EffectUnknown || r.Code != CodeProtocol && r.Code != CodeTimeout {
		t.Errorf("Call() = %+v, want it lost", r)
	}
	if used := allocated() - before; used > 200<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
}

// What a server says of itself holds no secret and no control characters.
func TestHelloHoldsNoSecret(t *testing.T) {
	s := serveScript(t, answering("initialize", func(w spoken) []string {
		return []string{result(w.id, `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"a\u001b[2J k3yk3yk3y","version":"\u202e"}}`)}
	}), false).server()
	s.Headers = []Header{{"x-key", "k3yk3yk3y"}}
	l := mustLink(t, upstreams(t, Limits{}, s), "web", Peer{Protocol: older})
	if got := l.ServerInfo().Server; strings.ContainsAny(got.Name+got.Version, "\x1b\u202e") || strings.Contains(got.Name, "k3yk3yk3y") {
		t.Errorf("ServerInfo().Server = %q, want it printable and without the secret", got)
	}
}

func TestAnAnswerBeforeALinksCallIsRefused(t *testing.T) {
	for _, touched := range []bool{true, false} {
		l := &Link{u: &Upstreams{limits: Limits{Unasked: 10}}}
		l.ctx, l.cancel = context.WithCancel(t.Context())
		d := newDuplex(l)
		q := &query{id: 3, permit: newPermit(nil, 0), inbox: make(chan incoming, 1), gone: make(chan struct{})}
		q.permit.touched.Store(touched)
		d.pending[3] = q
		if f := d.receiveMessage([]byte(result("3", oneResult))); (f == nil) != touched || len(q.inbox) == 1 != touched {
			t.Errorf("receiveMessage(touched = %t) = %v, want it taken only if the call was sent", touched, f)
		}
		if f := d.receiveMessage([]byte(result("4", oneResult))); touched && f != nil {
			t.Errorf("receiveMessage(an answer to none) = %v, want it dropped", f)
		}
	}
}

func TestCapabilitiesOfServersAreBounded(t *testing.T) {
	for size, ok := range map[int]bool{maxCapabilities: true, maxCapabilities + 1: false} { // in any order
		caps := `{"x":"` + strings.Repeat("y", size-len(`{"x":""}`)) + `"}`
		_, err := readServerHello([]byte(`{"protocolVersion":"2025-11-25","capabilities":` + caps + `}`))
		if (err == nil) != ok {
			t.Errorf("readServerHello(%d bytes of capabilities) = %v, want ok = %t", size, err, ok)
		}
	}
	for _, welcome := range []string{
		`{"capabilities":[]}`, `{"capabilities":{"a":{"b":1,"b":2}}}`, `{"capabilities":null}`, `{"protocolVersion":1}`, `[]`,
		`{"supportedVersions":{}}`, `{"supportedVersions":[1]}`, `{"protocolVersion":"a","protocolVersion":"b"}`,
	} {
		if _, err := readServerHello([]byte(welcome)); err == nil {
			t.Errorf("readServerHello(%s) = nil error, want it refused", welcome)
		}
	}
}

// flushing lets every piece of a response go at once, so that its end comes behind it.
type flushing struct{ http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	defer http.NewResponseController(f.ResponseWriter).Flush()
	return f.ResponseWriter.Write(p)
}

// Connections are used again, also behind an answer that came as an event: a call costs no handshake.
func TestConnectionsOfLinksAreUsedAgain(t *testing.T) {
	for _, stream := range []bool{false, true} {
		inner := serveScript(t, honest, stream)
		var opened sync.Map
		srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			opened.Store(r.RemoteAddr, true)
			inner.ServeHTTP(flushing{rw}, r)
		}))
		t.Cleanup(srv.Close)
		u := upstreams(t, Limits{}, Server{Name: "web", Type: TypeHTTP, URL: srv.URL})
		const calls = 50
		for range 2 { // both links have the same connections
			l := mustLink(t, u, "web", Peer{Protocol: older})
			c := callByListing(t, l, `{}`)
			for range calls / 2 {
				c.RunID = newRun()
				if r := l.Call(t.Context(), c, nil); r.Effect != EffectDone {
					t.Fatalf("Call() = %+v, want done", r)
				}
			}
		}
		n := 0
		opened.Range(func(any, any) bool { n++; return true })
		if n > calls/5 { // behind an event, one may be opened while another is read to its end
			t.Errorf("%d connections for %d calls (stream %t), want few", n, calls, stream)
		}
	}
}
