package upstream

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"pgfsm/internal/test/check"
)

// A rawServer accepts connections and gives each to serve, with its number. What serve leaves open is closed.
type rawServer struct {
	addr string
	mu   sync.Mutex
	open int // how many connections there were
}

func serveRaw(t *testing.T, serve func(conn net.Conn, number int)) *rawServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.NoError(t, err)
	s := &rawServer{addr: listener.Addr().String()}
	var all sync.WaitGroup
	var conns sync.Map
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.open++
			number := s.open
			s.mu.Unlock()
			conns.Store(conn, true)
			all.Go(func() {
				defer conn.Close()
				serve(conn, number)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		conns.Range(func(conn, _ any) bool { conn.(net.Conn).Close(); return true })
		all.Wait()
	})
	return s
}

// forEachRequest reads requests to the connection's end, and calls answer with the number and the body of each.
func forEachRequest(conn net.Conn, answer func(n int, body string) (more bool)) {
	src := bufio.NewReader(conn)
	for n := 1; ; n++ {
		req, err := http.ReadRequest(src)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil || !answer(n, string(body)) {
			return
		}
	}
}

const (
	plain     = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
	lastChunk = "0\r\n\r\n"
)

// A rawRequest is a request to a raw server.
type rawRequest struct {
	target *url.URL
	header http.Header
	frame  []byte
	permit *permit
}

func (r *rawRequest) post(ctx context.Context, tr *transport) (*http.Response, error) {
	return tr.RoundTrip(newRequest(ctx, http.MethodPost, r.target, r.header, r.frame, r.permit))
}

// exchanging is a transport to a raw server.
func (s *rawServer) exchanging(t *testing.T) (*transport, *rawRequest) {
	t.Helper()
	r := newHTTPTarget(Server{URL: "http://" + s.addr})
	tr := r.newTransport()
	t.Cleanup(tr.CloseIdleConnections)
	return tr, &rawRequest{target: r.origin, header: http.Header{}, frame: []byte("x"), permit: newPermit([]byte("x"), 0)}
}

// A permit is touched before a byte of the call may be on the wire, and not before.
func TestWhenAPermitIsTouched(t *testing.T) {
	noLeak(t)
	srv := serveRaw(t, func(conn net.Conn, _ int) {
		forEachRequest(conn, func(int, string) bool {
			_, err := io.WriteString(conn, plain)
			return err == nil
		})
	})
	for _, tt := range []struct {
		name    string
		spoil   func(r *rawRequest)
		touched bool
	}{
		{"context-is-over", nil, false},
		{"sent", func(*rawRequest) {}, true},
		{"sent-though-long", func(r *rawRequest) { r.frame = make([]byte, 1<<20) }, true},
		{"nothing-to-connect-to", func(r *rawRequest) {
			target := *r.target
			r.target, target.Host = &target, "127.0.0.1:0"
		}, false},
		{"value-that-cannot-be-sent", func(r *rawRequest) { r.header = http.Header{"X": {"a\r\nb"}} }, false},
		{"name-that-cannot-be-sent", func(r *rawRequest) { r.header = http.Header{"X y": {"a"}} }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr, r := srv.exchanging(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.spoil == nil {
				cancel()
			} else {
				tt.spoil(r)
			}
			resp, err := r.post(ctx, tr)
			if err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			if r.permit.touched.Load() != tt.touched || (err == nil) != strings.HasPrefix(tt.name, "sent") {
				t.Errorf("RoundTrip() = %v, touched = %t, want %t", err, r.permit.touched.Load(), tt.touched)
			}
		})
	}
}

// Many calls at once to a server that closes every third connection without an answer: each call gets its own answer, or it is
// unknown what became of it, and no call arrives twice.
func TestManyCallsToAServerThatHangsUp(t *testing.T) {
	const callers, calls = 64, 20
	noLeak(t)
	var mu sync.Mutex
	arrived := make(map[string]int)
	srv := serveScript(t, answering(methodCall, func(w spoken) []string { return []string{result(w.id, w.params)} }), false)
	srv.intercept = func(rw http.ResponseWriter, _ *http.Request, w spoken) bool {
		if w.method != methodCall {
			return false
		}
		mu.Lock()
		arrived[w.params]++
		served := len(arrived)
		mu.Unlock()
		if served%3 == 0 {
			panic(http.ErrAbortHandler)
		}
		if served%5 == 0 {
			rw.Header().Set("Connection", "close")
		}
		return false
	}
	u := upstreams(t, Limits{}, withTimeout(time.Minute, srv.server()))
	var wg sync.WaitGroup
	links := []*Link{mustLink(t, u, "web", Peer{Protocol: older}), mustLink(t, u, "web", Peer{Protocol: older})}
	for i := range callers {
		l := links[i%len(links)]
		c := callByListing(t, l, `{}`)
		wg.Go(func() {
			for n := range calls {
				c := c
				c.RunID = newRun()
				c.Arguments = object(fmt.Sprintf(`{"caller":%d,"number":%d}`, i, n))
				r := l.Call(t.Context(), c, nil)
				switch {
				case r.Effect == EffectDone && strings.Contains(string(r.Result), string(c.Arguments.Bytes())):
				case r.Effect == EffectUnknown && r.Code == CodeUnreachable:
				default:
					t.Errorf("Call(%s) = %+v with the result %s", c.Arguments.Bytes(), r, r.Result)
				}
			}
		})
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	if len(arrived) != callers*calls {
		t.Errorf("%d of %d calls arrived", len(arrived), callers*calls)
	}
	for params, n := range arrived { // in any order
		if n != 1 {
			t.Errorf("%s arrived %d times", params, n)
		}
	}
}

// What a server calls itself goes nowhere: messages are for the host that the operator names.
func TestAnEndpointIsAtTheHostThatIsConfigured(t *testing.T) {
	for _, tt := range []struct{ name, endpoint string }{
		{"path", "/m"},
		{"same", "http://kit.example/m"},
		{"capital-letters", "http://KIT.example/m"},
		{"port-said", "http://kit.example:80/m"},
		{"port-empty", "http://kit.example:/m"},
		{"letters-that-become-others", "http://\u212ait.example/m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newHTTPTarget(Server{URL: "http://kit.example/sse"})
			target, f := r.parseEndpoint([]byte(tt.endpoint), nil)
			switch {
			case f != nil && (f.code != CodeOrigin || tt.name == "path" || tt.name == "same"):
				t.Errorf("parseEndpoint() = %v", f)
			case f == nil && target.String() != "http://kit.example/m":
				t.Errorf("parseEndpoint() = %s", target)
			}
		})
	}
}
