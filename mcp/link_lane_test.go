package mcp

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
	if err != nil {
		t.Fatal(err)
	}
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

func (s *rawServer) opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// lanes are lanes to the server.
func (s *rawServer) lanes(t *testing.T) *lanes {
	t.Helper()
	r := newRoad(Server{URL: "http://" + s.addr + "/mcp"}, func(code, format string, args ...any) *fault {
		return &fault{code: code, reason: fmt.Sprintf(format, args...)}
	})
	l, ok := r.way().(*lanes)
	if !ok {
		t.Skip("there are no lanes on this system")
	}
	if l.waiting != idleTimeout {
		t.Errorf("connections wait for %s", l.waiting)
	}
	l.waiting = time.Hour // more than a test takes
	t.Cleanup(l.close)
	return l
}

// posting is a POST with a body, over a way.
func posting(s *lanes, frame string) *errand {
	return &errand{method: http.MethodPost, target: s.road.origin, head: head{header: http.Header{"A": {"b"}}}, frame: []byte(frame)}
}

// kept is how many connections wait.
func (s *lanes) kept() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.idle)
}

// top is the connection that is used next.
func (s *lanes) top() *lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.idle[len(s.idle)-1]
}

// each reads requests to the connection's end, and calls answer with the number and the body of each.
func each(conn net.Conn, answer func(n int, body string) (more bool)) {
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

// What is said in place of CLOSE in a response: the connection ends there.
const hangUp = "CLOSE"

// write writes a response of a table. It reports whether the connection stays open.
func write(conn net.Conn, response string) bool {
	response, end := strings.CutSuffix(response, hangUp)
	_, err := io.WriteString(conn, response)
	return err == nil && !end
}

const plain = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

// Which responses are read, and what is left behind them: a connection that is used again, or none.
func TestResponsesOnALane(t *testing.T) {
	tests := []struct {
		name, response string
		body           string // what is read
		reason         string // or why not
		again          bool   // the connection is used again
	}{
		{"length", plain, "hi", "", true},
		{"length-0", "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", "", "", true},
		{"no-content", "HTTP/1.1 204 No Content\r\n\r\n", "", "", true},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n", "hi", "", true},
		{"chunks-and-trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\n\r\n", "hi", "", true},
		{"chunks-cut-off", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n" + hangUp, "", "EOF", false},
		{"chunks-that-are-none", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhi\r\n\r\n", "", "chunk", false},
		{"length-cut-off", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi" + hangUp, "", "EOF", false},
		{"no-length", "HTTP/1.1 200 OK\r\n\r\nhi" + hangUp, "hi", "", false},
		{"close-is-announced", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", "hi", "", false},
		{"http-1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", "hi", "", false},
		{"http-1.0-kept-alive", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi", "hi", "", true},
		{"another-comes", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + plain, "hi", "", true},
		{"nothing-but-others", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", maxHTTPHeader/27+1), "", "exceeded 65536", false},
		{"another-protocol", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "", "101", false},
		{"a-status-that-is-none", "HTTP/1.1 099 What\r\nContent-Length: 2\r\n\r\nhi", "hi", "", false},
		{"head-at-the-limit", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: " + strings.Repeat("x", maxHTTPHeader-45) + "\r\n\r\nhi", "hi", "", true},
		{"head-too-long", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: " + strings.Repeat("x", maxHTTPHeader) + "\r\n\r\nhi", "", "exceeded 65536", false},
		{"line-too-long", "HTTP/1.1 200 " + strings.Repeat("x", maxHTTPHeader+1), "", "exceeded 65536", false},
		{"two-lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi", "", "Content-Length", false},
		{"length-below-0", "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nhi", "", "Content-Length", false},
		{"no-http", "hello\r\n\r\n", "", "malformed", false},
		{"no-answer", hangUp, "", "EOF", false},
		{"a-part-of-a-head", "HTTP/1.1 200 OK\r\nContent-Le" + hangUp, "", "missing colon", false},
		{"a-head-without-its-end", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + hangUp, "", "EOF", false},
		{"bytes-behind", plain + "x", "hi", "", false},
		{"two-answers", plain + plain, "hi", "", false},
		{"an-answer-behind-nothing", "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n" + plain, "", "", false},
		{"length-and-chunks", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "hi", "", true},
		{"one-length-twice", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi", "hi", "", true},
		{"a-body-behind-no-content", "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nhi", "", "", false},
		{"a-body-behind-not-modified", "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nhi", "", "", false},
		{"line-feeds-alone", strings.ReplaceAll(plain, "\r\n", "\n"), "hi", "", true},
		{"extensions-of-chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nhi\r\n0;c\r\n\r\n", "hi", "", true},
		{"a-chunk-longer-than-it-says", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi!\r\n0\r\n\r\n", "", "chunk", false},
		{"bytes-behind-chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\nx", "hi", "", false},
		{"an-answer-behind-chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n" + plain, "hi", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			srv := serveRaw(t, func(conn net.Conn, _ int) {
				each(conn, func(int, string) bool { return write(conn, tt.response) })
			})
			s := srv.lanes(t)
			for range 2 {
				var body []byte
				resp, err := s.trip(t.Context(), posting(s, "x"))
				if err == nil {
					body, err = io.ReadAll(resp.Body)
					resp.Body.Close()
				}
				if (err == nil) != (tt.reason == "") || err != nil && !strings.Contains(err.Error(), tt.reason) || err == nil && string(body) != tt.body {
					t.Fatalf("trip() = %q, %v, want %q, %q", body, err, tt.body, tt.reason)
				}
			}
			if n := srv.opened(); (n == 1) != tt.again || s.kept() > 1 || (s.kept() == 1) != tt.again {
				t.Errorf("%d connections for 2 requests, %d kept, want it used again: %t", n, s.kept(), tt.again)
			}
		})
	}
}

// A connection that waits is used only if the server has left it open and said nothing on it.
func TestLanesThatWait(t *testing.T) {
	for _, tt := range []struct {
		name, behind string
		age          time.Duration
		again        bool
	}{
		{"silent", "", 0, true},
		{"silent-nearly-for-too-long", "", 50 * time.Minute, true},
		{"silent-for-too-long", "", time.Hour, false},
		{"since-a-time-to-come", "", -time.Hour, false},
		{"closed", hangUp, 0, false},
		{"an-answer-to-nothing", strings.Repeat(plain, 100), 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			answered := make(chan struct{})
			srv := serveRaw(t, func(conn net.Conn, number int) {
				each(conn, func(n int, _ string) bool {
					if number > 1 || n > 1 {
						return write(conn, strings.Replace(plain, "hi", "me", 1))
					}
					write(conn, plain)
					<-answered // else it comes with the answer, and the connection does not wait
					return write(conn, tt.behind)
				})
			})
			s := srv.lanes(t)
			if body := taken(t, s); body != "hi" || s.kept() != 1 {
				t.Fatalf("the first answer is %q, with %d connections kept", body, s.kept())
			}
			close(answered)
			if tt.behind != "" {
				eventually(t, "something came behind the answer", func() bool { return !s.top().silent() })
			}
			s.mu.Lock()
			s.idle[0].since = s.idle[0].since.Add(-tt.age)
			s.mu.Unlock()
			if body := taken(t, s); body != "me" {
				t.Errorf("the second answer is %q", body)
			}
			if n := srv.opened(); (n == 1) != tt.again {
				t.Errorf("%d connections for 2 requests, want it used again: %t", n, tt.again)
			}
		})
	}
}

// taken is the body of the answer to one request.
func taken(t *testing.T, s *lanes) string {
	t.Helper()
	resp, err := s.trip(t.Context(), posting(s, "x"))
	if err != nil {
		t.Fatalf("trip() = %v", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("the body: %v", err)
	}
	return string(body)
}

// What waits is bounded, is closed after a while, and at the end.
func TestLanesAreLetGo(t *testing.T) {
	noLeak(t)
	srv := serveRaw(t, func(conn net.Conn, _ int) {
		each(conn, func(int, string) bool { return write(conn, plain) })
	})
	s := srv.lanes(t)
	open := func(n int) {
		var bodies []io.ReadCloser
		for range n {
			resp, err := s.trip(t.Context(), posting(s, "x"))
			if err != nil {
				t.Fatal(err)
			}
			bodies = append(bodies, resp.Body)
		}
		for _, body := range bodies {
			io.Copy(io.Discard, body)
			body.Close()
		}
	}
	open(idleConns + 3)
	if s.kept() != idleConns {
		t.Errorf("%d connections are kept, want %d", s.kept(), idleConns)
	}
	s.mu.Lock()
	for i := range idleConns / 2 {
		s.idle[i].since = s.idle[i].since.Add(-s.waiting)
	}
	first := s.idle[0]
	s.mu.Unlock()
	s.sweep()
	if s.kept() != idleConns/2 || !s.due || first.conn.Close() == nil {
		t.Errorf("%d connections are kept after half of them were too old, want the others, and that they are looked at again: %t", s.kept(), s.due)
	}
	s.mu.Lock()
	for _, l := range s.idle {
		l.since = l.since.Add(-s.waiting)
	}
	s.mu.Unlock()
	s.sweep()
	if s.kept() != 0 || s.due {
		t.Errorf("%d connections are kept after all were too old (more to come: %t)", s.kept(), s.due)
	}
	open(2)
	if s.kept() != 2 || !s.due {
		t.Errorf("%d connections are kept, to be looked at: %t; want 2", s.kept(), s.due)
	}
	s.close()
	open(1)
	if s.kept() != 0 {
		t.Errorf("%d connections are kept after the end", s.kept())
	}
}

// A body that is let go before its end takes the connection with it, and nothing of it is read any more.
func TestABodyThatIsNotRead(t *testing.T) {
	noLeak(t)
	gone := make(chan error, 1)
	srv := serveRaw(t, func(conn net.Conn, _ int) {
		each(conn, func(int, string) bool {
			write(conn, "HTTP/1.1 200 OK\r\nContent-Length: 20000000\r\n\r\nhi")
			_, err := conn.Read(make([]byte, 1))
			gone <- err
			return false
		})
	})
	s := srv.lanes(t)
	resp, err := s.trip(t.Context(), posting(s, "x"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if err := <-gone; err == nil || s.kept() != 0 {
		t.Errorf("the server has read %v, and %d connections are kept, want it closed", err, s.kept())
	}
	if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("Read() after Close() = %d, %v", n, err)
	}
	resp.Body.Close()
}

// The end of the context ends what is under way at once, wherever it is.
func TestTheEndOfAContextEndsAnExchange(t *testing.T) {
	const long = 64 << 20 // more than the system takes
	for _, tt := range []struct {
		name, response string
		frame          int
	}{
		{"while-it-is-written", "", long},
		{"before-the-answer", "", 1},
		{"in-the-head", "HTTP/1.1 200 OK\r\nContent-", 1},
		{"in-the-body", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi", 1},
		{"in-a-stream", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", 1},
		{"in-a-stream-while-it-is-written", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", long},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan struct{})
			srv := serveRaw(t, func(conn net.Conn, _ int) {
				_, _ = conn.Read(make([]byte, 1))
				write(conn, tt.response)
				cancel()
				<-over
			})
			s := srv.lanes(t)
			resp, err := s.trip(ctx, posting(s, strings.Repeat("x", tt.frame)))
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			close(over)
			if err == nil || s.kept() != 0 {
				t.Errorf("trip() = %v, with %d connections kept, want it cut off", err, s.kept())
			}
			ended := posting(s, "x")
			ended.permit = arm("echo", nil)
			if _, err := s.trip(ctx, ended); err == nil || ended.permit.touched.Load() {
				t.Errorf("trip() after the end = %v, bytes may be on the wire: %t", err, ended.permit.touched.Load())
			}
		})
	}
}

// A server may answer before it has read a request whole. The connection ends with the answer then: what it reads next is not the
// next request.
func TestAnAnswerBeforeTheRequestIsWritten(t *testing.T) {
	noLeak(t)
	over := make(chan struct{})
	srv := serveRaw(t, func(conn net.Conn, _ int) {
		_, _ = conn.Read(make([]byte, 1))
		write(conn, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
		<-over
	})
	s := srv.lanes(t)
	resp, err := s.trip(t.Context(), posting(s, strings.Repeat("x", 64<<20)))
	close(over)
	if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge || s.kept() != 0 {
		t.Errorf("trip() = %v, %v, with %d connections kept", resp, err, s.kept())
	}
}

// A permit is touched before a byte may be on the wire, and not before.
func TestWhenAPermitIsTouched(t *testing.T) {
	noLeak(t)
	srv := serveRaw(t, func(conn net.Conn, _ int) {
		each(conn, func(int, string) bool { return write(conn, plain) })
	})
	for _, tt := range []struct {
		name    string
		spoil   func(s *lanes, r *errand)
		touched bool
	}{
		{"a-context-that-is-over", nil, false},
		{"sent", func(*lanes, *errand) {}, true},
		{"sent-though-long", func(_ *lanes, r *errand) { r.frame = make([]byte, atOnce+1) }, true},
		{"nothing-to-connect-to", func(s *lanes, _ *errand) { s.close(); s.addr = "127.0.0.1:0" }, false},
		{"a-field-that-cannot-be-sent", func(_ *lanes, r *errand) { r.head.more = []Header{{"X", "a\r\nb"}} }, false},
		{"a-head-that-cannot-be-sent", func(_ *lanes, r *errand) { r.head.header = http.Header{"X": {"a\r\nb"}} }, false},
		{"a-name-that-cannot-be-sent", func(_ *lanes, r *errand) { r.head.header = http.Header{"X y": {"a"}} }, false},
		{"a-connection-that-breaks", func(s *lanes, _ *errand) { // between the look at it and the write
			l := s.top()
			l.probe = func(uintptr) bool { l.probed = true; return true }
			l.conn.(*net.TCPConn).CloseWrite()
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := srv.lanes(t)
			taken(t, s)
			r := posting(s, "x")
			r.permit = arm("echo", nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.spoil == nil {
				cancel()
			} else {
				tt.spoil(s, r)
			}
			resp, err := s.trip(ctx, r)
			if err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			if r.permit.touched.Load() != tt.touched || (err == nil) != strings.HasPrefix(tt.name, "sent") {
				t.Errorf("trip() = %v, touched = %t, want %t", err, r.permit.touched.Load(), tt.touched)
			}
			if strings.HasSuffix(tt.name, "cannot-be-sent") && s.kept() != 1 {
				t.Errorf("%d connections are kept, want the one that nothing was sent on", s.kept())
			}
		})
	}
}

// Who opens a stream has a new connection; who ends a session has one that waits.
func TestStreamsHaveConnectionsOfTheirOwn(t *testing.T) {
	noLeak(t)
	srv := serveRaw(t, func(conn net.Conn, _ int) {
		each(conn, func(int, string) bool { return write(conn, plain) })
	})
	s := srv.lanes(t)
	taken(t, s)
	for i, method := range []string{http.MethodDelete, http.MethodGet, http.MethodGet} {
		resp, err := s.trip(t.Context(), &errand{method: method, target: s.road.origin})
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		if n := srv.opened(); n != i+1 || s.kept() != i+1 {
			t.Errorf("%d connections, %d kept, after %s, want %d", n, s.kept(), method, i+1)
		}
	}
}

// The ways to servers: who is spoken to in clear text has lanes.
func TestWaysToServers(t *testing.T) {
	for origin, want := range map[string]string{ // in any order
		"http://127.0.0.1:80/mcp": "127.0.0.1:80",
		"http://localhost":        "localhost:80",
		"http://[::1]:8080/":      "[::1]:8080",
		"http://Kb.example:1/":    "Kb.example:1",
		"https://127.0.0.1/":      "",
		"http://bücher.example/":  "",
		"http://[fe80::1%25x]/":   "",
		"http://kb.example:/":     "",
	} {
		u, err := url.Parse(origin)
		if err != nil {
			t.Fatal(err)
		}
		r := road{origin: u}
		got := ""
		if s, ok := r.way().(*lanes); ok {
			got = s.addr
		}
		if lanesWork && got != want {
			t.Errorf("the way to %s is over %q, want %q", origin, got, want)
		}
	}
}
