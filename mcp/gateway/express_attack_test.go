package gateway

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
)

// alone is a request of the stateless revision, as it goes onto the wire.
func alone(id, method, name string) string {
	fields, params := "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: "+method+"\r\n", `{`+meta+`}`
	if name != "" {
		fields, params = fields+"Mcp-Name: "+name+"\r\n", `{"name":"`+name+`",`+meta+`}`
	}
	return raw("POST /mcp HTTP/1.1", fields, rpc(id, method, params))
}

// response reads one response.
func response(t *testing.T, in *bufio.Reader) (*http.Response, string) {
	t.Helper()
	r, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r, whole(t, r.Body)
}

// What net/http reads in another way than others, or not at all, is as it is with net/http alone: nothing is read as a request that it does
// not read as one.
func TestSmuggledRequestsAreAsNetHTTPHasThem(t *testing.T) {
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
		t.Run(tt.name, func(t *testing.T) { heldToNetHTTP(t, tt.say, tt.answers) })
	}
}

// A request's context ends with it, not with the connection: what was begun for it is let go of.
func TestTheContextOfARequestEndsWithIt(t *testing.T) {
	g, s := scripted(t, nil)
	contexts := make(chan context.Context, 2)
	g.decide = func(ctx context.Context, q *request) []byte {
		contexts <- ctx
		return s.dispatch(ctx, q)
	}
	c := dial(t, onLoopback(t, g), alone("1", "ping", ""))
	response(t, bufio.NewReader(c))
	if err := within(t, "the context", contexts).Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("behind the answer its error is %v", err)
	}
}

// A client that goes is seen to go, whatever it has sent behind its request.
func TestClientsThatGo(t *testing.T) {
	for _, tt := range []struct{ name, behind string }{
		{"at-once", ""}, {"behind-a-byte", "P"}, {"behind-another-request", alone("2", "ping", "")}, {"behind-three", strings.Repeat(alone("2", "ping", ""), 3)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, s := scripted(t, nil)
			c := dial(t, onLoopback(t, g), alone("1", "tools/call", "wait")+tt.behind)
			within(t, "the call", s.entered)
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			if err := within(t, "the end of the call", s.ends); !errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// What comes while a request is under way is answered behind it.
func TestRequestsThatComeMeanwhile(t *testing.T) {
	g, s := scripted(t, nil)
	c := dial(t, onLoopback(t, g), alone("1", "tools/call", "wait"))
	in := bufio.NewReader(c)
	within(t, "the call", s.entered)
	for _, more := range []string{alone("2", "ping", "")[:1], alone("2", "ping", "")[1:], alone("3", "tools/call", "say")} {
		if _, err := c.Write([]byte(more)); err != nil {
			t.Fatal(err)
		}
	}
	s.free <- struct{}{}
	for _, want := range []string{`"id":1`, `"id":2`, `"id":3`} {
		if r, body := response(t, in); r.StatusCode != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%d %q, want %s", r.StatusCode, body, want)
		}
	}
}

// A handler that breaks leaves nothing that goes on writing.
func TestNothingIsLeftOfAHandlerThatBreaks(t *testing.T) {
	g, s := scripted(t, nil)
	broken := make(chan *answer, 1)
	s.before = func(q *request) {
		broken <- q.out.(*answer)
		panic("a bug")
	}
	ended(t, dial(t, onLoopback(t, g), alone("1", "ping", "")))
	a := within(t, "the answer", broken)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.over || a.timer.Stop() {
		t.Error("it still gives signs of life")
	}
}

// A connection that is given on has no deadline of what was before: what net/http writes by itself may be late.
func TestNoDeadlineIsGivenOn(t *testing.T) {
	g, _ := scripted(t, nil)
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := g.express(atMost(on, 10))
	given := make(chan *conn, 1)
	go func() {
		if c, err := e.Accept(); err == nil {
			given <- c.(*conn)
		}
	}()
	dial(t, on.Addr().String(), alone("1", "ping", "")+"GET /sse HTTP/1.1\r\n")
	c := within(t, "the connection", given)
	if !c.reads.wanted.IsZero() || !c.writes.wanted.IsZero() {
		t.Error("what is read or written next has the time of what was before it")
	}
	for i := range 2 { // the second time there is nothing to do
		if err := e.Close(); (err != nil) != (i > 0) {
			t.Error(err)
		}
	}
	_ = c.Close()
	if err := e.finish(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := e.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("behind the end: %v", err)
	}
}

// However a connection is served and ends, it gives its place back once, and nothing knows it any more.
func TestConnectionsThatEnd(t *testing.T) {
	ping := alone("1", "ping", "")
	const stream = "GET /sse HTTP/1.1\r\nHost: 127.0.0.1:8787\r\n\r\n"
	for _, tt := range []struct {
		name, say, want string // what is answered holds
		given           bool   // it is given to net/http
	}{
		{"silent", "", "", false},
		{"half-a-request", ping[:20], "", true},
		{"half-a-body", ping[:len(ping)-5], "", false},
		{"quiet-behind-a-request", ping, "HTTP/1.1 200 OK", false},
		{"half-a-request-behind-one", ping + ping[:20], "HTTP/1.1 200 OK", true},
		{"half-a-body-behind-one", ping + ping[:len(ping)-5], "HTTP/1.1 200 OK", false},
		{"refused-with-more-to-come", "POST /mcp HTTP/1.1\r\n" + openingFields + "Authorization: Bearer x\r\nContent-Length: 99999\r\n\r\n", "HTTP/1.1 401 ", false},
		{"a-stream", stream, "HTTP/1.1 200 OK", true},
		{"a-stream-behind-requests", ping + ping + stream, "event: endpoint\n", true},
		{"what-net-http-refuses-behind-one", ping + "POST /mcp HTTP/1.1\r\nHost : x\r\n\r\n", "HTTP/1.1 400 ", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, _ := scripted(t, nil)
			on, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			e := g.express(atMost(on, 10))
			server := g.server(e.bounded)
			given := make(chan struct{}, 1)
			server.ConnState = func(c net.Conn, s http.ConnState) {
				if e.state(c, s); s == http.StateNew {
					given <- struct{}{}
				}
			}
			done := make(chan error, 1)
			go func() { done <- server.Serve(e) }()
			c := dial(t, on.Addr().String(), tt.say)
			for in, got := bufio.NewReader(c), ""; !strings.Contains(got, tt.want); {
				line, err := in.ReadString('\n')
				if got += line; err != nil {
					t.Fatalf("it was answered with %q, %v", got, err)
				}
			}
			if tt.given {
				within(t, "net/http's connection", given)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			_ = server.Close() // it closes what net/http has
			within(t, "the end of the server", done)
			if err := e.finish(t.Context()); err != nil || len(e.free) != 0 || len(e.direct) != 0 {
				t.Errorf("it ended with %v, %d places and %d direct connections", err, len(e.free), len(e.direct))
			}
		})
	}
}

// A brokenListener's connections are broken in a way that nobody has thought of.
type brokenListener struct{ net.Listener }

func (l brokenListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return brokenConn{c}, err
}

type brokenConn struct{ net.Conn }

func (brokenConn) Read([]byte) (int, error) { panic("a bug") }

// What breaks outside of the handler, while a connection is read, costs that connection and nobody else.
func TestAReaderThatBreaks(t *testing.T) {
	g, _ := scripted(t, nil)
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := g.express(atMost(brokenListener{on}, 10))
	go func() { _, _ = e.Accept() }() // nothing is given on
	for range 2 {
		if got := ended(t, dial(t, on.Addr().String(), "")); got != "" {
			t.Errorf("it was answered with %q", got)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if err := e.finish(t.Context()); err != nil || len(e.free) != 0 || len(e.direct) != 0 || e.quiet.Len() != 0 {
		t.Errorf("it ended with %v, %d places, %d direct and %d quiet connections", err, len(e.free), len(e.direct), e.quiet.Len())
	}
}
