package upstream

import (
	"fmt"
	"net"
	"testing"
	"time"

	"pgfsm/mcp/wire"
)

// A tailed server answers calls with an event, and says later what comes behind it: the test has it.
type tailed struct {
	*rawServer
	behind chan string // what comes behind an answer
	said   chan int    // when it was said, on which connection
}

const noteChanged = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

func serveTailed(t *testing.T) *tailed {
	s := &tailed{behind: make(chan string, 8), said: make(chan int, 8)}
	s.rawServer = serveRaw(t, func(conn net.Conn, number int) {
		each(conn, func(_ int, body string) bool {
			w := readWire([]byte(body))
			switch {
			case w.id == "":
				return write(conn, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
			case w.method != methodCall:
				answer := honest(w)[0]
				return write(conn, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer))
			}
			more := write(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"+
				chunk("data: "+result(w.id, oneResult)+"\n\n"))
			open := write(conn, <-s.behind)
			s.said <- number
			return more && open
		})
	})
	return s
}

// What comes behind an answer in its stream is incoming, whatever it is, and is no answer to the next request.
func TestWhatComesBehindAnAnswer(t *testing.T) {
	for _, tt := range []struct {
		name, behind string
		tells        bool // that the tools have changed
	}{
		{"end", lastChunk, false},
		{"end-with-an-extension", "0;x\r\n\r\n", false},
		{"garbage", "garbage\r\n", false},
		{"end-and-garbage", lastChunk + "garbage", false},
		{"half-an-end", lastChunk[:2], false},
		{"end-of-the-connection", hangUp, false},
		{"notification", chunk("data: "+noteChanged+"\n\n") + lastChunk, true},
		{"notification-that-looks-like-the-end", chunk("data: "+noteChanged+"\n\n0\r\n\r\n") + lastChunk, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			s := serveTailed(t)
			told := make(chan string, 8)
			u := upstreams(t, Limits{}, Server{Name: "s", Type: TypeHTTP, URL: "http://" + s.addr})
			l := linked(t, u, "s", Peer{Protocol: older, OnMessage: func(m wire.Message) { told <- m.Method }})
			first := asCall(t, l, `{}`)
			if r := l.Call(t.Context(), first, nil); r.Effect != EffectDone {
				t.Fatalf("the first call came to %+v", r)
			}
			s.behind <- tt.behind
			<-s.said
			if tt.tells {
				select {
				case method := <-told:
					if method != noteToolsChanged {
						t.Errorf("it told %s", method)
					}
				case <-time.After(30 * time.Second):
					t.Fatal("the notification was not received")
				}
			}
			s.behind <- lastChunk
			second := first
			second.RunID = newRun()
			// A connection with something behind its answer is closed, perhaps under the second call.
			r := l.Call(t.Context(), second, nil)
			if r.Effect != EffectDone && r.Code != CodeChanged && (tt.tells || r.Code != CodeUnreachable) {
				t.Fatalf("the second call came to %+v", r)
			}
		})
	}
}

// A link that ends leaves nothing of a stream whose end never comes.
func TestAnEndingThatNeverComes(t *testing.T) {
	noLeak(t)
	s := serveTailed(t)
	u := upstreams(t, Limits{}, Server{Name: "s", Type: TypeHTTP, URL: "http://" + s.addr})
	l := linked(t, u, "s", Peer{Protocol: older})
	if r := l.Call(t.Context(), asCall(t, l, `{}`), nil); r.Effect != EffectDone {
		t.Fatalf("the call came to %+v", r)
	}
	l.Close()
	s.behind <- ""
	<-s.said
}
