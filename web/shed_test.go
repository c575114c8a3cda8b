package web_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"pgfsm/web"
)

const patience = 30 * time.Second

// A rig is a server that answers every request; one that has a token authenticates.
type rig struct {
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

func serving(t *testing.T, connections int, change ...func(*http.Server)) *rig {
	t.Helper()
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: web.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			web.Authenticated(r.Context())
		}
		if r.URL.Path == "/read" {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		_, _ = io.WriteString(w, "ok")
		if r.URL.Path == "/wait" {
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
	return &rig{on.Addr().String(), idle, accepted}
}

// A client is one connection.
type client struct {
	t   *testing.T
	rig *rig
	c   net.Conn
	in  *bufio.Reader
}

func dial(t *testing.T, at *rig) *client {
	t.Helper()
	c, err := (&net.Dialer{Timeout: patience}).DialContext(context.Background(), "tcp", at.at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &client{t, at, c, bufio.NewReader(c)}
}

// asks sends a request and reports whether it was answered; if not, the connection was closed.
func (c *client) asks(path, more string) bool {
	c.t.Helper()
	if err := c.c.SetDeadline(time.Now().Add(patience)); err != nil {
		c.t.Fatal(err)
	}
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
		<-c.rig.idle
	}
	return err == nil && resp.StatusCode == http.StatusOK
}

const token = "Authorization: Bearer x\r\n"

// Connections that keep an address busy, in the numbers with which the admin address was kept busy.
func TestFloods(t *testing.T) {
	for _, tt := range []struct {
		name  string
		count int
		each  func(*client)
	}{
		{"idle-after-health", 260, func(c *client) { c.asks("/healthz", "") }},
		{"silent", 1500, func(*client) {}},
		{"half-a-header", 1500, func(c *client) { _, _ = io.WriteString(c.c, "GET /healthz HTTP/1.1\r\nHost:") }},
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
			if err := shed.c.SetReadDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
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

// A request that is under way is not shed: the next connection waits for a place.
func TestRequestsUnderWayAreKept(t *testing.T) {
	at := serving(t, 1)
	busy := dial(t, at)
	if _, err := io.WriteString(busy.c, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.ReadResponse(busy.in, nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	next := dial(t, at)
	if err := next.c.SetDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(next.c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if b, err := next.in.ReadByte(); err == nil {
		t.Fatalf("it is answered: %q", b)
	}
	_ = busy.c.Close()
	if err := next.c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.ReadResponse(next.in, nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%v, %v", resp, err)
	}
}
