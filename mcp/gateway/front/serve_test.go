package front

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/test/check"
)

// dial opens a connection and says something on it.
func dial(t *testing.T, at, say string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", at)
	check.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, say); err != nil {
		t.Fatal(err)
	}
	return c
}

// ended waits for the other side to close a connection, and returns what it said before.
func ended(t *testing.T, c net.Conn) string {
	t.Helper()
	check.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	b, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("the connection was not closed")
	}
	return string(b)
}

func TestSlowClientsAreCutOff(t *testing.T) {
	g, s := scripted(t, nil)
	g.timeouts.header, g.timeouts.body = time.Second, time.Second
	at := onLoopback(t, g)
	const start = "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:8787\r\nContent-Type: application/json\r\n"
	for _, c := range []struct{ name, say, want string }{
		{"silence", "", ""},
		{"half-a-body", start + "Content-Length: 100\r\n\r\n{", "408"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ended(t, dial(t, at, c.say))
			if want := "HTTP/1.1 " + c.want; c.want != "" && (!strings.HasPrefix(got, want) || !strings.Contains(got, `"body_too_slow"`)) {
				t.Errorf("it was answered with %q", got)
			}
		})
	}
	t.Run("a-long-request-is-not-slow", func(t *testing.T) {
		body := rpc("1", "tools/call", `{"name":"wait",`+meta+`}`)
		done := make(chan *http.Response, 1)
		go func() {
			done <- do(t, at, "POST", "/mcp", body, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: wait")
		}()
		within(t, "the call", s.entered)
		select {
		case err := <-s.ends:
			t.Fatalf("it was cut off: %v", err)
		case <-time.After(2 * g.timeouts.body):
		}
		s.free <- struct{}{}
		if r := within(t, "the answer", done); r.StatusCode != 200 {
			t.Errorf("status %d", r.StatusCode)
		}
	})
}

// A client that does not read is cut off, and what it does not read is not kept.
func TestDeafClientsAreCutOff(t *testing.T) {
	g, s := scripted(t, nil)
	g.timeouts.write = 200 * time.Millisecond
	at := onLoopback(t, g)
	body := rpc("1", "tools/call", `{"name":"wait",`+meta+`}`)
	dial(t, at, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:8787\r\nContent-Type: application/json\r\nMcp-Protocol-Version: 2026-07-28\r\n"+
		"Mcp-Method: tools/call\r\nMcp-Name: wait\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
	q := within(t, "the call", s.entered)
	large := make([]byte, 1<<20)
	for i := range large {
		large[i] = 'x'
	}
	var err error
	for range 100 { // more than the buffers of a connection hold
		if err = q.Out.Send(large); err != nil {
			break
		}
	}
	if !errors.Is(err, errGone) {
		t.Errorf("it ended with %v", err)
	}
	if err := within(t, "the end of the call", s.ends); err == nil {
		t.Error("the call was not cancelled")
	}
}
