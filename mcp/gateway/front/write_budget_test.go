package front

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// Pipes are a listener whose connections hold nothing: what is written waits until it is read.
type pipes struct {
	come chan net.Conn
	over chan struct{}
	once sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.come:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.over) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// An end is one end of a pipe. The gateway has the other.
type end struct {
	net.Conn
	in   *bufio.Reader
	gone chan struct{} // closed when the gateway closes it
}

type otherEnd struct {
	net.Conn
	once sync.Once
	gone chan struct{}
}

func (o *otherEnd) Close() error {
	defer o.once.Do(func() { close(o.gone) })
	return o.Conn.Close()
}

// onPipes serves a gateway whose large results have a size, and returns what opens a connection, says something on it and waits until the
// answer begins.
func onPipes(t *testing.T, g *testFront, s *script, size int) func(say string) *end {
	t.Helper()
	g.dispatch = func(ctx context.Context, q *session.Request) []byte {
		switch name, _ := wire.Text(wire.Member(q.Params, "name")); name {
		case "says":
			_ = q.Out.Send(large([]byte("1"), size)) // the answer says if the client is gone
			return large(q.ID, 0)
		case "large":
			return large(q.ID, size)
		}
		return s.dispatch(ctx, q)
	}
	on := &pipes{come: make(chan net.Conn), over: make(chan struct{})}
	serves(t, g, on)
	return func(say string) *end {
		t.Helper()
		here, there := net.Pipe()
		t.Cleanup(func() { _ = here.Close() })
		e := &end{here, bufio.NewReader(here), make(chan struct{})}
		on.come <- &otherEnd{Conn: there, gone: e.gone}
		if _, err := io.WriteString(here, say); err != nil {
			t.Fatal(err)
		}
		if _, err := e.in.Peek(1); err != nil {
			t.Fatal(err)
		}
		return e
	}
}

func large(id []byte, size int) []byte {
	return wire.Response(nil, id, []byte(`"`+strings.Repeat("x", size)+`"`))
}

// calledBy is a stateless call of somebody.
func calledBy(who, tool string) string {
	return raw("POST /mcp HTTP/1.1", "Authorization: Bearer token-"+who+"\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: "+
		tool+"\r\n", rpc("1", "tools/call", `{"name":"`+tool+`",`+meta+`}`))
}

// TestAnswersAreBoundedTogether: if answers that clients have not read take too much memory, the client that has not read for longest is cut
// off; small answers pass. Package session tests whose connection that is.
func TestAnswersAreBoundedTogether(t *testing.T) {
	const size = 100 << 10
	room := len(large([]byte("1"), size))
	for _, tt := range []struct {
		name          string
		limit         int
		first, second string
		cut           bool
	}{
		{"one-past", 4*room - 2, "large", "large", true},
		{"one-past-before-an-answer", 4*room - 2, "says", "large", true},
		{"at-the-limit", 4 * room, "large", "large", false},
		{"small", 2, "large", "x", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, s := scripted(t, func(o *setup) { o.Limits.MemoryBytes = tt.limit })
			open := onPipes(t, g, s, size)
			one := open(calledBy("ann", tt.first))
			other := open(calledBy("ann", tt.second))
			if tt.cut {
				within(t, "the end of the first", one.gone)
			} else if r, body := readResponse(t, one.in); r.StatusCode != http.StatusOK || len(body) != room {
				t.Errorf("the first was answered with %d, %d bytes", r.StatusCode, len(body))
			}
			if r, body := readResponse(t, other.in); r.StatusCode != http.StatusOK || tt.second == "large" && len(body) != room {
				t.Errorf("the second was answered with %d, %d bytes", r.StatusCode, len(body))
			}
			if _, err := io.WriteString(other, calledBy("ann", "x")); err != nil {
				t.Fatal(err)
			}
			readResponse(t, other.in) // what was before it is over
			if !tt.cut {
				if _, err := io.WriteString(one, calledBy("ann", "x")); err != nil {
					t.Fatal(err)
				}
				readResponse(t, one.in)
			}
			if n := g.table.Memory.Size(); n != 0 {
				t.Errorf("%d bytes are not given back", n)
			}
		})
	}
}

// What waits for its turn on a channel counts, too, and goes with it. Another client's does not.
func TestAnswersThatWaitForAChannelAreBounded(t *testing.T) {
	const size = 100 << 10
	room := len(large([]byte("1"), size))
	for _, tt := range []struct {
		name  string
		limit int
		cut   bool
	}{{"at-the-limit", 6 * room, false}, {"one-past", 6*room - 2, true}} {
		t.Run(tt.name, func(t *testing.T) {
			g, s := scripted(t, func(o *setup) { o.Limits.MemoryBytes = tt.limit })
			open := onPipes(t, g, s, size)
			channel := func(who string, calls int) (*end, *eventReader) {
				auth := "Authorization: Bearer token-" + who + "\r\n"
				e := open("GET /sse HTTP/1.1\r\nHost: 127.0.0.1:8787\r\n" + auth + "\r\n")
				r, err := http.ReadResponse(e.in, nil)
				check.NoError(t, err)
				events := &eventReader{t: t, r: bufio.NewReader(r.Body)}
				_, _, to, _ := events.next()
				for i := range calls {
					body := rpc(strconv.Itoa(i), "tools/call", `{"name":"large"}`)
					post := strings.Replace(raw("POST /x HTTP/1.1", auth, body), "/x", to, 1)
					if r, body := readResponse(t, open(post).in); r.StatusCode != http.StatusAccepted {
						t.Fatalf("%d %s", r.StatusCode, body)
					}
				}
				return e, events
			}
			_, bob := channel("bob", 1)
			e, ann := channel("ann", 3)
			if tt.cut {
				within(t, "the end of the channel", e.gone)
			}
			for range 3 {
				if _, _, data, ok := ann.next(); ok == tt.cut || ok && len(data) != room {
					t.Errorf("it was told %d bytes, %t", len(data), ok)
				}
			}
			if _, _, data, ok := bob.next(); !ok || len(data) != room {
				t.Errorf("the other client was told %d bytes, %t", len(data), ok)
			}
		})
	}
}

// A stream that is not read is cut off, too.
func TestStreamsAreBoundedTogether(t *testing.T) {
	const size = 100 << 10
	room := len(large([]byte("1"), size))
	g, s := scripted(t, func(o *setup) { o.Limits.MemoryBytes = 4*room - 2 })
	open := onPipes(t, g, s, size)
	const auth = "Authorization: Bearer token-ann"
	id := begin(t, g, "/mcp", "2025-11-25", auth)
	opened := g.table.Find(id, session.Identity{Name: "ann", Token: "id-of-ann"}, "")
	for range 4 {
		_ = opened.Send(make([]byte, room/4))
	}
	e := open("GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:8787\r\n" + auth + "\r\n" + headerSession + ": " + id + "\r\n\r\n")
	r, err := http.ReadResponse(e.in, nil)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%+v, %v", r, err)
	}
	events := &eventReader{t: t, r: bufio.NewReader(r.Body)}
	events.next() // it is being told the rest
	open(calledBy("ann", "large"))
	within(t, "the end of the stream", e.gone)
}
