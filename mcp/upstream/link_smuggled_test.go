package upstream

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// What a server says behind an answer is nobody's answer: neither the next one of that session, nor one of another session whose requests
// go over the same connections.
func TestSmuggledAnswers(t *testing.T) {
	whole := func(doc string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(doc), doc)
	}
	const inParts = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	event := func(doc string) string { return chunk("data: " + doc + "\n\n") }
	wrong := func(id string) string { return result(id, strings.Replace(oneResult, "hi", "smuggled", 1)) }
	right := func(id string) string { return result(id, oneResult) }
	for _, tt := range []struct {
		name   string
		answer func(id string) string
		later  func(id string) string // in a packet of its own, once the answer was read; nil: nothing
		waits  bool                   // the connection is idle then
	}{
		{"behind-a-whole-one", func(id string) string { return whole(right(id)) + whole(wrong(id)) }, nil, false},
		{"behind-a-whole-one-later", func(id string) string { return whole(right(id)) }, func(id string) string { return whole(wrong(id)) }, true},
		{"behind-the-end-of-a-stream", func(id string) string { return inParts + event(right(id)) },
			func(id string) string { return lastChunk + whole(wrong(id)) }, false},
		{"in-a-stream", func(id string) string { return inParts + event(right(id)) + event(wrong(id)) + lastChunk }, nil, false},
		{"as-a-trailer", func(id string) string { return inParts + event(right(id)) + "0\r\n" + whole(wrong(id)) }, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			var calls atomic.Int32
			read, said := make(chan struct{}), make(chan struct{})
			again := sync.OnceFunc(func() { close(read) })
			closed := make(chan struct{})
			s := serveRaw(t, func(conn net.Conn, _ int) {
				mine := false // the first call came on this connection
				defer func() {
					if mine {
						close(closed)
					}
				}()
				forEachRequest(conn, func(_ int, body string) bool {
					w := readWire([]byte(body))
					switch {
					case w.id == "":
						_, err := io.WriteString(conn, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
						return err == nil
					case w.method != methodCall || calls.Add(1) > 1:
						_, err := io.WriteString(conn, whole(honest(w)[0]))
						return err == nil
					}
					mine = true
					_, err := io.WriteString(conn, tt.answer(w.id))
					<-read
					if tt.later != nil {
						_, _ = io.WriteString(conn, tt.later(w.id)) // whoever has had enough of it may be gone
					}
					close(said)
					return err == nil
				})
			})
			t.Cleanup(again)
			u := upstreams(t, Limits{}, Server{Name: "s", Type: TypeHTTP, URL: "http://" + s.addr})
			one, other := mustLink(t, u, "s", Peer{Protocol: older}), mustLink(t, u, "s", Peer{Protocol: older})
			call := callByListing(t, one, `{}`)
			for n, l := range []*Link{one, other, one, other} {
				call.RunID = newRun()
				r := l.Call(t.Context(), call, nil)
				// net/http closes a connection with unread bytes behind an answer. If the next request has it already, that call fails.
				failed := n > 0 && r.Result == nil && (r.Code == CodeUnreachable || r.Code == CodeProtocol)
				if string(r.Result) != oneResult && !failed {
					t.Fatalf("call %d came to %+v", n+1, r)
				}
				if n > 0 {
					continue
				}
				again()
				<-said
				if tt.waits { // the client receives of it in its own time
					<-closed
				}
			}
		})
	}
}
