package front

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/gateway/session"
)

// A child is a gateway that a client has started: what goes in and what comes out, line by line.
type child struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Reader
	done chan error
	stop context.CancelFunc
}

func startChild(t *testing.T, g *testFront) *child {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	c := &child{t: t, in: inW, out: bufio.NewReader(outR), done: make(chan error, 1), stop: cancel}
	go func() {
		c.done <- g.ServeStdio(ctx, inR, outW, session.Identity{Name: "operator"})
		_ = outW.Close()
	}()
	t.Cleanup(func() {
		cancel()
		_, _ = inW.Close(), outR.Close()
	})
	return c
}

func (c *child) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *child) hear(want string) {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil || strings.TrimSuffix(line, "\n") != want {
		c.t.Fatalf("%q came, %v; not %q", line, err, want)
	}
}

func TestStdio(t *testing.T) {
	g, s := scripted(t, nil)
	var seen []session.Identity
	s.before = func(q *session.Request) { seen = append(seen, q.From) }
	c := startChild(t, g)
	c.say(rpc("0", "initialize", `{"protocolVersion":"2025-11-25"}`))
	c.hear(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}`)
	c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	within(t, "the notification", s.received)
	c.say(rpc("1", "tools/call", `{"name":"wait"}`))
	q := within(t, "the call", s.entered)
	c.say("")
	c.say(rpc("2", "tools/call", `{"name":"say"}`) + "\r") // while the other one is under way
	for i := range 3 {
		c.hear(`{"jsonrpc":"2.0",  "method":"notifications/progress","params":{"n":` + string(rune('0'+i)) + `}}`)
	}
	c.hear(`{"jsonrpc":"2.0","id":2,"result":{"name":"say"}}`)
	c.say(rpc("1", "ping", "{}"))
	c.hear(`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"a request with this id is under way","data":{"code":"id_in_use"}}}`)
	_ = q.Session.Send([]byte("{\n}"))
	c.hear(`{ }`)
	if w := serve(g, come("POST", "/mcp", rpc("1", "ping", "{}"), "Mcp-Session-Id: "+q.Session.ID)); w.Code != 404 {
		t.Errorf("its session over HTTP: %d", w.Code)
	}
	_ = c.in.Close() // and what is under way is answered
	s.free <- struct{}{}
	c.hear(`{"jsonrpc":"2.0","id":1,"result":{"name":"wait"}}`)
	if q.Out.Send([]byte(`{}`)) == nil {
		t.Error("a message was sent after the answer")
	}
	if err := within(t, "the end", c.done); err != nil {
		t.Error(err)
	}
	if g.table.Count() != 0 {
		t.Error("its session is left")
	}
	for _, who := range seen {
		if who != (session.Identity{Name: "operator"}) {
			t.Errorf("it was %v", who)
		}
	}
}

func TestStdioReadsStrictly(t *testing.T) {
	const limit = 200
	padded := func(n int) string {
		front, back := `{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"`, `"}}`
		return front + strings.Repeat("y", n-len(front)-len(back)) + back
	}
	for _, c := range []struct{ name, say, want string }{
		{"no-json", "x", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{"batch", `[` + rpc("1", "ping", "{}") + `]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{"at-the-limit", padded(limit), `{"jsonrpc":"2.0","id":9,"result":{}}`},
		{"one-past", padded(limit + 1), `{"jsonrpc":"2.0","id":9,"error":{"code":-32000,`},
		{"far-past-with-the-id-at-the-end", `{"method":"ping","params":{"x":"` + strings.Repeat("y", 100_000) + `"},"jsonrpc":"2.0","id":"z"}`,
			`{"jsonrpc":"2.0","id":"z","error":{"code":-32000,`},
		{"stateless", rpc("1", "unknown", "{"+meta+"}"), `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,`},
		{"stateless-without-capabilities", rpc("1", "unknown", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`),
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,`},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _ := scripted(t, func(o *setup) { o.Limits.BodyBytes = limit })
			child := startChild(t, g)
			child.say(c.say)
			if line, err := child.out.ReadString('\n'); !strings.HasPrefix(line, c.want) {
				t.Errorf("%q came, %v", line, err)
			}
			child.say(rpc("3", "ping", "{}")) // and it goes on
			child.hear(`{"jsonrpc":"2.0","id":3,"result":{}}`)
		})
	}
}

func TestStdioEras(t *testing.T) {
	g, s := scripted(t, nil)
	var eras []string
	s.before = func(q *session.Request) { eras = append(eras, q.Method+" "+q.Protocol) }
	c := startChild(t, g)
	c.say(`{"jsonrpc":"2.0","method":"notifications/x"}`)
	within(t, "the notification", s.received)
	c.say(rpc("1", "ping", `{}`))
	c.hear(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	c.say(rpc("2", "initialize", `{"protocolVersion":"2025-06-18"}`))
	c.hear(`{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18"}}`)
	c.say(rpc("3", "ping", `{}`))
	c.hear(`{"jsonrpc":"2.0","id":3,"result":{}}`)
	c.say(rpc("4", "ping", `{`+meta+`}`))
	c.hear(`{"jsonrpc":"2.0","id":4,"result":{}}`)
	want := []string{"notifications/x 2026-07-28", "ping ", "initialize ", "ping 2025-06-18", "ping 2026-07-28"}
	if diff := cmp.Diff(want, eras); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStdioCancels(t *testing.T) {
	g, s := scripted(t, nil)
	c := startChild(t, g)
	c.say(rpc(`"a"`, "tools/call", `{"name":"wait",`+meta+`}`))
	within(t, "the call", s.entered)
	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b"}}`)
	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`)
	if err := within(t, "the end of the call", s.ends); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

func TestStdioEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(c *child, s *script)
		cut  bool // what is under way is cancelled
		err  error
	}{
		{"its-client-closes-its-input", func(c *child, s *script) { _ = c.in.Close(); s.free <- struct{}{} }, false, nil},
		{"it-is-stopped", func(c *child, s *script) { c.stop(); s.free <- struct{}{} }, false, nil},
		{"its-client-does-not-wait", func(c *child, _ *script) { _ = c.in.Close() }, true, nil},
		{"its-input-breaks", func(c *child, _ *script) { _ = c.in.CloseWithError(io.ErrClosedPipe) }, true, io.ErrClosedPipe},
		{"its-output-breaks", func(c *child, _ *script) { c.say("x") }, true, errGone},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, s := scripted(t, nil)
			if c.cut {
				g.timeouts.shutdown = 20 * time.Millisecond
			}
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			child := &child{t: t, in: inW, out: bufio.NewReader(outR), stop: cancel}
			done := make(chan error, 1)
			go func() { done <- g.ServeStdio(ctx, inR, outW, session.Identity{Name: "operator"}) }()
			child.say(rpc("1", "tools/call", `{"name":"wait",`+meta+`}`))
			within(t, "the call", s.entered)
			if c.err == errGone {
				_ = outR.Close()
			} else {
				go func() { _, _ = io.Copy(io.Discard, outR) }()
			}
			c.end(child, s)
			if err := within(t, "the end", done); !errors.Is(err, c.err) {
				t.Errorf("it ended with %v", err)
			}
			if c.cut {
				within(t, "the end of the call", s.ends)
			}
		})
	}
	t.Run("its-client-does-not-read", func(t *testing.T) {
		g, _ := scripted(t, nil)
		g.timeouts.shutdown = 20 * time.Millisecond
		_, outW := io.Pipe()
		done := make(chan error, 1)
		go func() {
			done <- g.ServeStdio(t.Context(), strings.NewReader(rpc("1", "ping", "{}")), outW, session.Identity{Name: "operator"})
		}()
		if err := within(t, "the end", done); err != nil {
			t.Error(err)
		}
		_ = outW.Close()
	})
}
