package web_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/internal/web"
)

const patience = 30 * time.Second

// A fixture is a server that answers every request; one that has a token authenticates.
type fixture struct {
	at       string
	idle     chan struct{} // a request was answered, and its connection is idle
	accepted chan struct{} // a connection came
}

// An announcing listener says when a connection comes.
type announcing struct {
	net.Listener
	accepted chan struct{}
}

func (l announcing) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	select {
	case l.accepted <- struct{}{}:
	default:
	}
	return c, err
}

func serving(t *testing.T, connections int, change ...func(*http.Server)) *fixture {
	t.Helper()
	on, err := net.Listen("tcp", "127.0.0.1:0")
	check.NoError(t, err)
	s := &http.Server{Handler: web.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if caller := r.Header.Get("Authorization"); caller != "" {
			web.Authenticated(r.Context(), caller)
		}
		if strings.HasPrefix(r.URL.Path, "/read") {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		_, _ = io.WriteString(w, "ok")
		if strings.HasSuffix(r.URL.Path, "/wait") {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))}
	for _, c := range change {
		c(s)
	}
	accepted := make(chan struct{}, 10)
	shedding, idle := web.Shed(s, announcing{on, accepted}, connections), make(chan struct{}, 1)
	state := s.ConnState
	s.ConnState = func(c net.Conn, to http.ConnState) {
		if state(c, to); to == http.StateIdle {
			idle <- struct{}{}
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(shedding) }()
	t.Cleanup(func() {
		_ = s.Close()
		<-ended
	})
	return &fixture{on.Addr().String(), idle, accepted}
}

// A client is one connection.
type client struct {
	t       *testing.T
	fixture *fixture
	c       net.Conn
	in      *bufio.Reader
}

func dial(t *testing.T, at *fixture) *client {
	t.Helper()
	c, err := (&net.Dialer{Timeout: patience}).DialContext(context.Background(), "tcp", at.at)
	check.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return &client{t, at, c, bufio.NewReader(c)}
}

// asks sends a request and reports whether it was answered; if not, the connection was closed.
func (c *client) asks(path, more string) bool {
	c.t.Helper()
	check.NoError(c.t, c.c.SetDeadline(time.Now().Add(patience)))
	if _, err := io.WriteString(c.c, "GET "+path+" HTTP/1.1\r\nHost: x\r\n"+more+"\r\n"); err != nil {
		return false
	}
	resp, err := http.ReadResponse(c.in, nil)
	if os.IsTimeout(err) {
		c.t.Fatal("nobody answered, and nobody closed the connection")
	}
	if err != nil {
		return false
	}
	if _, err = io.Copy(io.Discard, resp.Body); err == nil {
		<-c.fixture.idle
	}
	return err == nil && resp.StatusCode == http.StatusOK
}

const token = "Authorization: Bearer x\r\n"

// Connections that keep an address busy, in the numbers with which the admin address was kept busy. PGFSM_HALF_OPEN sets how many send no
// whole request: make flood.
func TestFloods(t *testing.T) {
	halfOpen := 1500
	if n, err := strconv.Atoi(os.Getenv("PGFSM_HALF_OPEN")); err == nil {
		halfOpen = n
	}
	for _, tt := range []struct {
		name  string
		count int
		each  func(*client)
	}{
		{"idle-after-health", 260, func(c *client) { c.asks("/healthz", "") }},
		{"silent", halfOpen, func(*client) {}},
		{"half-a-header", halfOpen, func(c *client) { _, _ = io.WriteString(c.c, "GET /healthz HTTP/1.1\r\nHost:") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := serving(t, 256)
			known := dial(t, at)
			if !known.asks("/pending", token) {
				t.Fatal("nobody is there yet, and an approver is not answered")
			}
			for range tt.count {
				tt.each(dial(t, at))
			}
			if !known.asks("/approve", token) {
				t.Error("the connection of an approver was closed")
			}
			if !dial(t, at).asks("/approve", token) {
				t.Error("a new approver is not answered")
			}
		})
	}
}

func TestWhoIsShed(t *testing.T) {
	for _, tt := range []struct {
		name string
		open []string // what each connection sends before the next one opens: empty is nothing
		want int      // which of them is closed for one more
	}{
		{"the-silent-one", []string{token, ""}, 1},
		{"the-oldest-stranger", []string{token, "X: y\r\n", ""}, 1},
		{"an-approver-if-there-is-nobody-else", []string{token, token}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := serving(t, len(tt.open))
			var all []*client
			for _, more := range tt.open {
				c := dial(t, at)
				if all = append(all, c); more != "" && !c.asks("/", more) {
					t.Fatal("not answered")
				}
			}
			if !dial(t, at).asks("/", token) {
				t.Fatal("one more is not answered")
			}
			shed := all[tt.want]
			check.NoError(t, shed.c.SetReadDeadline(time.Now().Add(patience)))
			if b, err := shed.in.ReadByte(); err == nil || os.IsTimeout(err) {
				t.Errorf("connection %s was not closed: %q, %v", strconv.Itoa(tt.want), b, err)
			}
		})
	}
	t.Run("what-counts-is-the-last-request", func(t *testing.T) {
		at := serving(t, 2)
		was, is := dial(t, at), dial(t, at)
		if !was.asks("/", token) || !was.asks("/", "") || !is.asks("/", token) || !dial(t, at).asks("/", token) {
			t.Fatal("not answered")
		}
		if was.asks("/", "") {
			t.Error("the connection whose last request did not authenticate is still there")
		}
	})
}

// stall sends a request without its body, and returns once the handler waits for it.
func stall(c *client, caller string) *client {
	c.t.Helper()
	check.NoError(c.t, c.c.SetDeadline(time.Now().Add(patience)))
	const request = "POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n"
	if _, err := io.WriteString(c.c, request+caller+"\r\n"); err != nil {
		c.t.Fatal(err)
	}
	for _, want := range []string{"HTTP/1.1 100 Continue\r\n", "\r\n"} {
		if line, err := c.in.ReadString('\n'); err != nil || line != want {
			c.t.Fatalf("%q, %v", line, err)
		}
	}
	return c
}

// TestBodiesThatNeverArrive: each caller holds at most an eighth of the connections with them.
func TestBodiesThatNeverArrive(t *testing.T) {
	const places, share = 16, 2
	finish := func(c *client) bool {
		_, _ = io.WriteString(c.c, "123456789")
		resp, err := http.ReadResponse(c.in, nil)
		return err == nil && resp.StatusCode == http.StatusOK
	}
	for _, caller := range []string{token, ""} {
		at := serving(t, places)
		other := stall(dial(t, at), "Authorization: Bearer other\r\n")
		var all []*client
		for range 4 * places {
			all = append(all, stall(dial(t, at), caller))
		}
		if !dial(t, at).asks("/", "Authorization: Bearer third\r\n") {
			t.Error("another caller is not answered")
		}
		if !finish(other) {
			t.Error("the connection of another caller was closed")
		}
		for i, c := range all {
			if kept := i >= len(all)-share; finish(c) != kept {
				t.Errorf("connection %d of %d: kept %t, want %t", i, len(all), !kept, kept)
			}
		}
	}
}
