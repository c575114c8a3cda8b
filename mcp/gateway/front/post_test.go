package front

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

const openingFields = "Host: 127.0.0.1:8787\r\nContent-Type: application/json\r\n"

// raw is a request as it goes onto the wire.
func raw(first, fields, body string) string {
	return first + "\r\n" + openingFields + fields + "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// alone is a request of the stateless revision, as it goes onto the wire.
func alone(id, method, name string) string {
	fields, params := "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: "+method+"\r\n", `{`+meta+`}`
	if name != "" {
		fields, params = fields+"Mcp-Name: "+name+"\r\n", `{"name":"`+name+`",`+meta+`}`
	}
	return raw("POST /mcp HTTP/1.1", fields, rpc(id, method, params))
}

// response reads one response.
func readResponse(t *testing.T, in *bufio.Reader) (*http.Response, string) {
	t.Helper()
	r, err := http.ReadResponse(in, nil)
	check.NoError(t, err)
	return r, whole(t, r.Body)
}

// TestSmuggledRequests counts the answers to requests that servers and proxies read differently: no body is answered as a request.
func TestSmuggledRequests(t *testing.T) {
	const post, host = "POST /mcp HTTP/1.1\r\n", "Host: 127.0.0.1:8787\r\n"
	ping := alone("1", "ping", "")
	inside := alone("66", "ping", "") // must not be answered where it is a body
	length := func(n string) string { return post + openingFields + "Content-Length: " + n + "\r\n\r\n" }
	for _, tt := range []struct {
		name    string
		answers int
		say     []string
	}{
		{"length-and-chunks", 1, []string{post + openingFields + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + ping}},
		{"chunks-and-more-behind", 2, []string{ping + post + openingFields + "Transfer-Encoding: chunked\r\n\r\n2;x=y\r\n{}\r\n0\r\nA: b\r\n\r\n" + ping}},
		{"another-encoding", 1, []string{post + openingFields + "Transfer-Encoding: x, chunked\r\n\r\n0\r\n\r\n" + inside}},
		{"space-behind-a-name", 1, []string{post + openingFields + "Transfer-Encoding : chunked\r\nContent-Length: 2\r\n\r\n{}" + inside}},
		{"two-lengths", 1, []string{post + openingFields + "Content-Length: 2\r\nContent-Length: 4\r\n\r\n{}{}" + inside}},
		{"a-length-with-a-sign", 1, []string{length("+2") + "{}" + inside}},
		{"a-length-beyond-63-bits", 1, []string{length("18446744073709551618") + "{}" + inside}},
		{"line-feeds-alone", 1, []string{strings.ReplaceAll(ping, "\r\n", "\n")}},
		{"a-zero-byte", 1, []string{post + openingFields + "X: \x00\r\nContent-Length: 2\r\n\r\n{}" + inside}},
		{"a-line-end-in-front", 2, []string{ping + "\r\n" + ping}},
		{"a-host-of-another", 1, []string{strings.Replace(ping, "127.0.0.1:8787", "evil.test", 1)}},
		{"a-url-of-another-host", 1, []string{strings.Replace(ping, "POST /mcp", "POST http://evil.test/mcp", 1)}},
		{"a-request-as-a-body", 2, []string{raw("POST /mcp HTTP/1.1", "", inside) + ping}},
		{"a-request-as-a-refused-body", 2, []string{raw("POST /nowhere HTTP/1.1", "", inside) + ping}},
		{"a-request-as-half-a-refused-body", 1, []string{post + openingFields + "Authorization: Bearer x\r\nContent-Length: 999999\r\n\r\n" + inside}},
		{"expect", 3, []string{strings.Replace(ping, "\r\n", "\r\nExpect: 100-continue\r\n", 1) + ping}},
		{"http-2", 1, []string{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}},
		{"an-older-protocol", 1, []string{strings.Replace(ping, "HTTP/1.1", "HTTP/1.0", 1) + inside}},
	} {
		t.Run(tt.name, func(t *testing.T) { conversation(t, onLoopbackOf(t), tt.say, tt.answers) })
	}
}

// onLoopbackOf serves a scripted gateway.
func onLoopbackOf(t *testing.T) string {
	t.Helper()
	g, _ := scripted(t, nil)
	return onLoopback(t, g)
}

// conversation says something on a connection, and wants so many answers and then the end of the connection.
func conversation(t *testing.T, at string, say []string, answers int) {
	t.Helper()
	c := dial(t, at, say[0])
	for _, more := range say[1:] {
		if _, err := io.WriteString(c, more); err != nil {
			t.Fatal(err)
		}
	}
	in, last := bufio.NewReader(c), false
	for n := range answers {
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", n+1, err)
		}
		whole(t, r.Body)
		last = r.Close
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil && !last {
		t.Fatal(err)
	}
	behind, _ := in.Peek(in.Buffered()) // it is there
	if got := string(behind) + ended(t, c); got != "" {
		t.Errorf("%q came behind the answers", got)
	}
}

// A handler that breaks costs its client the connection, and nobody else.
func TestAHandlerThatBreaks(t *testing.T) {
	g, s := scripted(t, nil)
	at := onLoopback(t, g)
	s.before = func(q *session.Request) {
		if string(q.ID) == "13" {
			panic("a bug")
		}
	}
	ping := func(id string) string {
		return raw("POST /mcp HTTP/1.1", "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: ping\r\n", rpc(id, "ping", `{`+meta+`}`))
	}
	if got := ended(t, dial(t, at, ping("13"))); got != "" {
		t.Errorf("it was answered with %q", got)
	}
	r, err := http.ReadResponse(bufio.NewReader(dial(t, at, ping("14"))), nil)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := wire.Member([]byte(whole(t, r.Body)), "id"); string(got) != "14" || g.table.Requests.Count() != 0 {
		t.Errorf("%s was answered, and %d are under way", got, g.table.Requests.Count())
	}
}

// TestShutdownClosesConnections: one without a request at once; one with a request when it was answered.
func TestShutdownClosesConnections(t *testing.T) {
	g, s := scripted(t, nil)
	on, err := net.Listen("tcp", "127.0.0.1:0")
	check.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, on, g.Drain) }()
	silent := dial(t, on.Addr().String(), "")
	idle := dial(t, on.Addr().String(), alone("1", "ping", ""))
	readResponse(t, bufio.NewReader(idle))
	busy := dial(t, on.Addr().String(), alone("2", "tools/call", "wait"))
	within(t, "the call", s.entered)
	cancel()
	s.free <- struct{}{}
	for _, c := range []net.Conn{silent, idle} {
		if got := ended(t, c); got != "" {
			t.Errorf("it was told %q", got)
		}
	}
	if got := ended(t, busy); !strings.HasPrefix(got, "HTTP/1.1 200 OK") {
		t.Errorf("it was answered with %q", got)
	}
	if err := within(t, "the end", done); err != nil && !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}
