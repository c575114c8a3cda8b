package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"pgfsm/internal/test/tool"
)

// What is for nobody counts as much as what says something: blank lines, events of no kind that is known, and answers to requests
// that were never made.
func TestFloodsOfNothingEndALink(t *testing.T) {
	const most = 20
	for name, tt := range map[string]struct { // in any order
		line  string
		count int // of the lines, which make one more message than that
	}{
		"answers-within-the-limit": {result("999", `{}`), most},
		"answers":                  {result("999", `{}`), most + 1},
		"blank-within-the-limit":   {" ", most},
		"blank":                    {" ", most + 1},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			flood := on("tools/list", func(w spoken) []string {
				var lines []string
				for range tt.count {
					lines = append(lines, tt.line)
				}
				return append(lines, result(w.id, onePage))
			})
			l := linked(t, upstreams(t, Limits{Unasked: most}, serveSSE(t, flood)), "sse", Peer{Protocol: older})
			if _, err := l.Listing(t.Context(), 0); (err != nil) != (tt.count > most) {
				t.Errorf("Listing() with %d of them between = %v", tt.count, err)
			}
		})
	}
}

// A server that takes the connection for another protocol has not answered, and nobody waits for what it says there.
func TestServersThatSwitchProtocolsAreNotWaitedFor(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		conn, out, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(out, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
		out.Flush()
		_, _ = conn.Read(make([]byte, 1)) // until the client has enough
	}))
	t.Cleanup(srv.Close)
	for _, typ := range []string{TypeHTTP, TypeSSE} {
		t.Run(typ, func(t *testing.T) {
			noLeak(t)
			u := upstreams(t, Limits{}, Server{Name: "s", Type: typ, URL: srv.URL, ConnectTimeout: time.Minute})
			if l, err := u.Link(t.Context(), "s", Peer{}); err == nil {
				t.Errorf("Link() = %+v", l)
			}
			if all := clientOf(u).List(t.Context()); all[0].Code != CodeUnreachable {
				t.Errorf("List() = %+v", all)
			}
		})
	}
}

// A server's process ends, and what it has started and left its group keeps its pipes open: nobody is there who could answer.
func TestProcessesThatLeaveTheirPipesToOthersAreDead(t *testing.T) {
	setsid := tool.Path(t, "util-linux", "setsid")
	const script = `read line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}'
"$0" sh -c ': >"$0"; exec sleep 30' "$1" &
until [ -e "$1" ]; do sleep 0.01; done
read line; read line; exit 3`
	server := Server{Name: "s", Type: TypeStdio, Command: "sh", Args: []string{"-c", script, setsid, filepath.Join(t.TempDir(), "left")}, ConnectTimeout: time.Minute}
	l := linked(t, upstreams(t, Limits{}, server), "s", Peer{Protocol: older})
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second) // before the pipe is closed
	defer cancel()
	_, err := l.Request(ctx, "resources/list", nil, nil)
	var e *LinkError
	if !errors.As(err, &e) || e.Code != CodeDied {
		t.Errorf("Request() = %v, want code %s", err, CodeDied)
	}
	l.Close()
}
