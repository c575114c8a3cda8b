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
	if err != nil {
		t.Fatal(err)
	}
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
		{"chunks-and-length", 1, []string{post + openingFields + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + ping}},
		{"chunks-in-capitals", 1, []string{post + openingFields + "Transfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n" + ping}},
		{"chunks-and-more-behind", 2, []string{ping + post + openingFields + "Transfer-Encoding: chunked\r\n\r\n2;x=y\r\n{}\r\n0\r\nA: b\r\n\r\n" + ping}},
		{"another-encoding", 1, []string{post + openingFields + "Transfer-Encoding: x, chunked\r\n\r\n0\r\n\r\n" + inside}},
		{"space-behind-a-name", 1, []string{post + openingFields + "Transfer-Encoding : chunked\r\nContent-Length: 2\r\n\r\n{}" + inside}},
		{"two-lengths", 1, []string{post + openingFields + "Content-Length: 2\r\nContent-Length: 4\r\n\r\n{}{}" + inside}},
		{"one-length-twice", 2, []string{post + openingFields + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}" + ping}},
		{"a-list-of-lengths", 1, []string{length("2, 2") + "{}" + inside}},
		{"a-length-with-a-sign", 1, []string{length("+2") + "{}" + inside}},
		{"a-length-in-hex", 1, []string{length("0x2") + "{}" + inside}},
		{"a-length-with-zeroes", 2, []string{length("0000000002") + "{}" + ping}},
		{"a-length-with-many-zeroes", 2, []string{length("000000000000002") + "{}" + ping}},
		{"a-length-beyond-63-bits", 1, []string{length("18446744073709551618") + "{}" + inside}},
		{"a-length-of-ten-digits", 1, []string{length("9999999999") + "{}"}},
		{"a-line-that-goes-on", 1, []string{post + openingFields + "X: a\r\n Content-Length: 2\r\nContent-Length: 4\r\n\r\n{}{}"}},
		{"a-carriage-return-in-a-value", 1, []string{post + openingFields + "X: a\rContent-Length: 2\r\nContent-Length: 4\r\n\r\n{}{}"}},
		{"line-feeds-alone", 1, []string{strings.ReplaceAll(ping, "\r\n", "\n")}},
		{"one-line-feed-alone", 1, []string{post + host + "X: a\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"}},
		{"a-blank-line-of-line-feeds", 1, []string{post + openingFields + "Content-Length: 2\n\n{}"}},
		{"a-zero-byte", 1, []string{post + openingFields + "X: \x00\r\nContent-Length: 2\r\n\r\n{}" + inside}},
		{"a-line-end-in-front", 2, []string{ping + "\r\n" + ping}},
		{"a-line-end-for-itself", 2, []string{ping + "\r\n", ping}},
		{"line-ends-in-front", 2, []string{ping + "\r\n\r\n\r\n" + ping}},
		{"a-line-end-in-front-of-the-first", 1, []string{"\r\n" + ping}},
		{"two-hosts", 1, []string{post + host + openingFields + "Content-Length: 2\r\n\r\n{}" + inside}},
		{"a-host-of-another", 1, []string{strings.Replace(ping, "127.0.0.1:8787", "evil.test", 1)}},
		{"a-host-behind-a-user", 1, []string{strings.Replace(ping, "127.0.0.1:8787", "x@127.0.0.1:8787", 1)}},
		{"a-url-of-another-host", 1, []string{strings.Replace(ping, "POST /mcp", "POST http://evil.test/mcp", 1)}},
		{"an-origin-of-another", 2, []string{raw("POST /mcp HTTP/1.1", "Origin: http://evil.test\r\n", inside) + ping}},
		{"two-origins", 1, []string{raw("POST /mcp HTTP/1.1", "Origin: http://127.0.0.1:8787\r\nOrigin: http://evil.test\r\n", "{}")}},
		{"two-tokens", 1, []string{raw("POST /mcp HTTP/1.1", "Authorization: Bearer token-ann\r\nauthorization: Bearer token-bob\r\n", "{}")}},
		{"a-request-as-a-body", 2, []string{raw("POST /mcp HTTP/1.1", "", inside) + ping}},
		{"a-request-as-a-refused-body", 2, []string{raw("POST /nowhere HTTP/1.1", "", inside) + ping}},
		{"a-request-as-a-body-of-another-type", 2, []string{strings.Replace(raw("POST /mcp HTTP/1.1", "", inside), "application/json", "text/plain", 1) + ping}},
		{"a-request-as-half-a-refused-body", 1, []string{post + openingFields + "Authorization: Bearer x\r\nContent-Length: 999999\r\n\r\n" + inside}},
		{"closed-behind-it", 1, []string{strings.Replace(ping, "\r\n", "\r\nConnection: close\r\n", 1) + inside}},
		{"expect", 3, []string{strings.Replace(ping, "\r\n", "\r\nExpect: 100-continue\r\n", 1) + ping}},
		{"http-2", 1, []string{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}},
		{"an-older-protocol", 1, []string{strings.Replace(ping, "HTTP/1.1", "HTTP/1.0", 1) + inside}},
	} {
		t.Run(tt.name, func(t *testing.T) { conversation(t, onLoopbackOf(t), tt.say, tt.answers) })
	}
}

// TestConnectionsGoOn counts the answers on one connection: which requests end it, and which do not.
func TestConnectionsGoOn(t *testing.T) {
	const post, stateless = "POST /mcp HTTP/1.1", "Mcp-Protocol-Version: 2026-07-28\r\n"
	call := func(name, pad string) string {
		return raw(post, stateless+"Mcp-Method: tools/call\r\nMcp-Name: "+name+"\r\n", rpc("7", "tools/call", `{"name":"`+name+`","pad":"`+pad+`",`+meta+`}`))
	}
	ping := raw(post, stateless+"Mcp-Method: ping\r\n", rpc("1", "ping", `{`+meta+`}`))
	for _, tt := range []struct {
		name    string
		answers int
		say     []string // in packets of their own
	}{
		{"an-answer", 1, []string{call("x", "")}},
		{"one-behind-the-other", 3, []string{call("x", "") + ping + ping}},
		{"a-body-for-itself", 2, []string{ping[:len(ping)-5], ping[len(ping)-5:] + ping}},
		{"a-large-body", 2, []string{call("x", strings.Repeat("p", 100<<10)) + ping}},
		{"a-stream", 2, []string{call("say", "") + ping}},
		{"accepted", 2, []string{raw(post, stateless+"Mcp-Method: notifications/x\r\n", `{"jsonrpc":"2.0","method":"notifications/x"}`) + ping}},
		{"refused-with-its-body-unread", 2, []string{raw(post, "Authorization: Bearer x\r\n", "{}") + ping}},
		{"refused-and-more-to-come", 1, []string{post + "\r\n" + openingFields + "Authorization: Bearer x\r\nContent-Length: 999999\r\n\r\n{"}},
		{"too-large", 1, []string{post + "\r\n" + openingFields + "Content-Length: 999999999\r\n\r\n"}},
		{"no-message", 2, []string{raw(post, "", "") + ping}},
		{"not-json", 2, []string{raw(post, "", "{") + ping}},
		{"another-path", 2, []string{raw("POST /x HTTP/1.1", "", "{}") + ping}},
		{"another-method-behind", 2, []string{ping + "PUT /mcp HTTP/1.1\r\nHost: 127.0.0.1:8787\r\n\r\n"}},
		{"a-broken-request-behind", 2, []string{ping + "POST /mcp HTTP/1.1\r\nHost : x\r\n\r\n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conversation(t, onLoopbackOf(t), tt.say, tt.answers)
		})
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

// A handler that breaks leaves nothing that goes on writing.
func TestNothingIsLeftOfAHandlerThatBreaks(t *testing.T) {
	g, s := scripted(t, nil)
	broken := make(chan *response, 1)
	s.before = func(q *session.Request) {
		broken <- q.Out.(*response)
		panic("a bug")
	}
	ended(t, dial(t, onLoopback(t, g), alone("1", "ping", "")))
	a := within(t, "the answer", broken)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.finished || a.timer.Stop() {
		t.Error("it still gives signs of life")
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
	if err != nil {
		t.Fatal(err)
	}
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
