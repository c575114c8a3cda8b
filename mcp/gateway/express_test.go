package gateway

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/wire"
)

const openingFields = "Host: 127.0.0.1:8787\r\nContent-Type: application/json\r\n"

// raw is a request as it goes onto the wire.
func raw(first, fields, body string) string {
	return first + "\r\n" + openingFields + fields + "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

var openingTable = []struct {
	name, text string
	size       int // of what is ordinary; negative: all of it
}{
	{"ordinary", "POST /mcp HTTP/1.1\r\n" + openingFields + "Content-Length: 3\r\n\r\n", -1},
	{"with-its-body", raw("POST /servers/a_b-c.d/mcp HTTP/1.1", "", "{}"), len(raw("POST /servers/a_b-c.d/mcp HTTP/1.1", "", "{}")) - 2},
	{"nothing", "", 0},
	{"half", "POST /mcp HTTP/1.1\r\n" + openingFields + "Content-Length: 3\r\n", 0},
	{"another-method", raw("GET /mcp HTTP/1.1", "", ""), 0},
	{"a-method-in-small-letters", raw("post /mcp HTTP/1.1", "", ""), 0},
	{"an-older-protocol", raw("POST /mcp HTTP/1.0", "", ""), 0},
	{"a-query", raw("POST /mcp?x HTTP/1.1", "", ""), 0},
	{"an-escape", raw("POST /%6dcp HTTP/1.1", "", ""), 0},
	{"a-host-in-the-path", raw("POST //x/mcp HTTP/1.1", "", ""), 0},
	{"a-url", raw("POST http://x/mcp HTTP/1.1", "", ""), 0},
	{"no-path", raw("POST  HTTP/1.1", "", ""), 0},
	{"space-in-the-path", raw("POST /a b HTTP/1.1", "", ""), 0},
	{"an-empty-line-in-front", "\r\n" + raw("POST /mcp HTTP/1.1", "", ""), 0},
	{"no-host", "POST /mcp HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 0},
	{"no-length", "POST /mcp HTTP/1.1\r\n" + openingFields + "\r\n", 0},
	{"chunks", "POST /mcp HTTP/1.1\r\n" + openingFields + "Transfer-Encoding: chunked\r\n\r\n", 0},
	{"expect", raw("POST /mcp HTTP/1.1", "Expect: 100-continue\r\n", ""), 0},
	{"no-fields", "POST /mcp HTTP/1.1\r\n\r\n", 0},
}

func TestOpeningsAreReadAsNetHTTPReadsThem(t *testing.T) {
	for _, tt := range openingTable {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.size
			if want < 0 {
				want = len(tt.text)
			}
			if got := openedAlike(t, tt.text); got != want {
				t.Errorf("it has %d bytes, want %d", got, want)
			}
		})
	}
}

// openedAlike reads an opening, and holds it to what net/http reads.
func openedAlike(t *testing.T, text string) int {
	t.Helper()
	var o opening
	size := o.read([]byte(text))
	if size == 0 {
		return 0
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		t.Fatalf("net/http does not read %q: %v", text, err)
	}
	want := []any{r.Method, r.URL.Path, r.URL.EscapedPath(), r.RequestURI, r.Host, r.ContentLength, r.Header, r.Close, r.URL.RawQuery, r.URL.Host}
	got := []any{"POST", o.path, o.path, o.path, o.Host, o.Length, o.Header, false, "", ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%q is not what net/http reads (-want +got):\n%s", text, diff)
	}
	return size
}

func FuzzOpening(f *testing.F) {
	for _, tt := range openingTable {
		f.Add(tt.text)
	}
	f.Fuzz(func(t *testing.T, text string) { openedAlike(t, text) })
}

// A connection stays here until something comes on it that is not ordinary, and goes on with all that was read.
func TestWhatIsGivenOnToNetHTTP(t *testing.T) {
	ping := raw("POST /mcp HTTP/1.1", "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: ping\r\n", rpc("1", "ping", `{`+meta+`}`))
	for _, tt := range []struct {
		name string
		here int // how many requests are answered here
		on   string
	}{
		{"a-stream", 0, "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:8787\r\n\r\n"},
		{"a-stream-behind-a-request", 1, "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:8787\r\n\r\n"},
		{"half-an-opening", 2, "POST /mcp HTTP/1.1\r\nHo"},
		{"one-that-is-too-long", 1, "POST /mcp HTTP/1.1\r\nX: " + strings.Repeat("x", directBuffer-len("POST /mcp HTTP/1.1\r\nX: "))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, _ := scripted(t, nil)
			on, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			e := g.express(atMost(on, 10))
			given := make(chan net.Conn, 1)
			go func() {
				c, err := e.Accept()
				if err == nil {
					given <- c
				}
			}()
			c := dial(t, on.Addr().String(), strings.Repeat(ping, tt.here)+tt.on)
			in := bufio.NewReader(c)
			for range tt.here {
				r, err := http.ReadResponse(in, nil)
				if err != nil || r.StatusCode != http.StatusOK {
					t.Fatalf("%+v, %v", r, err)
				}
				whole(t, r.Body)
			}
			got := make([]byte, len(tt.on))
			other := within(t, "the connection", given)
			if _, err := io.ReadFull(other, got); err != nil || string(got) != tt.on {
				t.Errorf("%q was given on, %v", got, err)
			}
			e.state(other, http.StateClosed) // as net/http says
			if err := other.Close(); err != nil {
				t.Error(err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			if err := e.finish(t.Context()); err != nil || len(e.free) != 0 || e.quiet.Len() != 0 || len(e.direct) != 0 {
				t.Errorf("it ended with %v, %d places, %d quiet and %d direct connections", err, len(e.free), e.quiet.Len(), len(e.direct))
			}
		})
	}
}

// What is answered here is answered as net/http does it.
func TestDirectConnectionsAnswerAsNetHTTPDoes(t *testing.T) {
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
		{"a-stream-is-wanted", 1, []string{raw(post, stateless+"Accept: text/event-stream, application/json\r\nMcp-Method: ping\r\n", rpc("1", "ping", `{`+meta+`}`))}},
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
			heldToNetHTTP(t, tt.say, tt.answers)
		})
	}
}

// heldToNetHTTP says something to the gateway, and to net/http alone in front of it.
func heldToNetHTTP(t *testing.T, say []string, answers int) {
	t.Helper()
	g, _ := scripted(t, nil)
	here := conversation(t, onLoopback(t, g), say, answers)
	places := func() *bounded {
		on, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return atMost(on, 10)
	}()
	server := g.server(places)
	done := make(chan error, 1)
	go func() { done <- server.Serve(places) }()
	there := conversation(t, places.Addr().String(), say, answers)
	_ = server.Close() // that it was closed is what comes back
	within(t, "the end of the server", done)
	if diff := cmp.Diff(there, here); diff != "" || len(here) != answers {
		t.Errorf("%d answers (-net/http +here)\n%s", len(here), diff)
	}
}

// An answered is a response as a client sees it.
type answered struct {
	Status int
	Header http.Header
	Body   string
	Length int64
	Close  bool
}

// conversation says something on a connection, and returns what was answered.
func conversation(t *testing.T, at string, say []string, answers int) (all []answered) {
	t.Helper()
	c := dial(t, at, say[0])
	for _, more := range say[1:] {
		if _, err := io.WriteString(c, more); err != nil {
			t.Fatal(err)
		}
	}
	in := bufio.NewReader(c)
	for range answers {
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", len(all)+1, err)
		}
		if r.Header.Get("Date") != "" {
			r.Header.Set("Date", "now")
		}
		all = append(all, answered{r.StatusCode, r.Header, whole(t, r.Body), r.ContentLength, r.Close})
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil && !all[len(all)-1].Close {
		t.Fatal(err)
	}
	behind, _ := in.Peek(in.Buffered()) // it is there
	if got := string(behind) + ended(t, c); got != "" {
		t.Errorf("%q came behind the answers", got)
	}
	return all
}

// A handler that breaks costs its client the connection, and nobody else.
func TestAHandlerThatBreaks(t *testing.T) {
	g, s := scripted(t, nil)
	at := onLoopback(t, g)
	s.before = func(q *request) {
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
	if got := wire.Member([]byte(whole(t, r.Body)), "id"); string(got) != "14" || g.busy.count() != 0 {
		t.Errorf("%s was answered, and %d are under way", got, g.busy.count())
	}
}

// At the end, connections with a request are waited for, and cut off where that takes too long.
func TestTheEndOfDirectConnections(t *testing.T) {
	for _, tt := range []struct {
		name string
		cut  bool
	}{{"waited-for", false}, {"cut-off", true}} {
		t.Run(tt.name, func(t *testing.T) {
			g, s := scripted(t, nil)
			on, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			g.hosts[on.Addr().String()] = true
			e := g.express(atMost(on, 10))
			go func() { _, _ = e.Accept() }() // nothing is given on
			quiet := dial(t, on.Addr().String(), "")
			busy := dial(t, on.Addr().String(), raw("POST /mcp HTTP/1.1", "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: wait\r\n",
				rpc("1", "tools/call", `{"name":"wait",`+meta+`}`)))
			within(t, "the call", s.entered)
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			ended(t, quiet)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- e.finish(ctx) }()
			if tt.cut {
				cancel()
				if err := within(t, "the end of the call", s.ends); err != context.Canceled {
					t.Errorf("the call ended with %v", err)
				}
			} else {
				s.free <- struct{}{}
			}
			if err := within(t, "the end", done); (err != nil) != tt.cut {
				t.Errorf("it ended with %v", err)
			}
			if got := ended(t, busy); strings.HasPrefix(got, "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nConnection: close\r\n") == tt.cut {
				t.Errorf("it was answered with %q", got)
			}
		})
	}
}
