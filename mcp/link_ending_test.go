package mcp

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

// What comes behind an answer in its stream is heard when there is reason to: before the next request, or after a while. If it is the end, and
// has come, the connection is used again.
func TestWhatComesBehindAnAnswer(t *testing.T) {
	if !lanesWork {
		t.Skip("there are no lanes on this system")
	}
	const never = time.Hour // more than a test takes
	for _, tt := range []struct {
		name   string
		wait   time.Duration
		behind string
		tells  bool // that the tools have changed
		again  bool // the connection is used for the second call; else it may be
	}{
		{"the-end-before-the-next-request", never, lastChunk, false, true},
		{"an-end-in-other-words-before-it", never, "0;x\r\n\r\n", false, false},
		{"garbage-before-it", never, "garbage\r\n", false, false},
		{"the-end-and-garbage", never, lastChunk + "garbage", false, false},
		{"half-an-end", never, lastChunk[:2], false, false},
		{"the-end-of-the-connection", never, hangUp, false, false},
		{"a-notification-before-it", never, chunk("data: "+noteChanged+"\n\n") + lastChunk, true, false},
		{"a-notification-that-looks-like-the-end", never, chunk("data: "+noteChanged+"\n\n0\r\n\r\n") + lastChunk, true, false},
		{"a-notification-and-no-other-request", 1, chunk("data: "+noteChanged+"\n\n") + lastChunk, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			s := serveTailed(t)
			told := make(chan string, 8)
			u := upstreams(t, Limits{}, Server{Name: "s", Type: TypeHTTP, URL: "http://" + s.addr})
			l := linked(t, u, "s", Peer{Protocol: older, Tell: func(m wire.Message) { told <- m.Method }})
			l.carrier.(*httpCarrier).endings.wait = tt.wait
			first := asCall(t, l, `{}`)
			if r := l.Call(t.Context(), first, nil); r.Effect != EffectDone {
				t.Fatalf("the first call came to %+v", r)
			}
			s.behind <- tt.behind
			on := <-s.said
			if tt.wait == never {
				s.behind <- lastChunk
				second := first
				second.RunID = newRun()
				r := l.Call(t.Context(), second, nil)
				if r.Effect != EffectDone && r.Code != CodeChanged {
					t.Fatalf("the second call came to %+v", r)
				}
				if r.Effect == EffectDone && tt.again && <-s.said != on {
					t.Error("the connection was not used again")
				}
			}
			if tt.tells {
				select {
				case method := <-told:
					if method != noteToolsChanged {
						t.Errorf("it told %s", method)
					}
				case <-time.After(30 * time.Second):
					t.Fatal("the notification was not heard")
				}
			}
		})
	}
}

// A link that ends has nothing of a stream left whose end never comes.
func TestAnEndingThatNeverComes(t *testing.T) {
	if !lanesWork {
		t.Skip("there are no lanes on this system")
	}
	for _, wait := range []time.Duration{time.Hour, 1} {
		t.Run(wait.String(), func(t *testing.T) {
			noLeak(t)
			s := serveTailed(t)
			u := upstreams(t, Limits{}, Server{Name: "s", Type: TypeHTTP, URL: "http://" + s.addr})
			l := linked(t, u, "s", Peer{Protocol: older})
			l.carrier.(*httpCarrier).endings.wait = wait
			if r := l.Call(t.Context(), asCall(t, l, `{}`), nil); r.Effect != EffectDone {
				t.Fatalf("the call came to %+v", r)
			}
			l.Close()
			s.behind <- ""
			<-s.said
			if kept := u.byName["s"].pool.way.(*lanes).kept(); kept > 1 { // the handshake's may wait
				t.Errorf("%d connections are kept", kept)
			}
		})
	}
}
