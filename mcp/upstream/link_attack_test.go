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
	l := mustLink(t, upstreams(t, Limits{}, server), "s", Peer{Protocol: older})
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second) // before the pipe is closed
	defer cancel()
	_, err := l.Request(ctx, "resources/list", nil, nil)
	var e *LinkError
	if !errors.As(err, &e) || e.Code != CodeDied {
		t.Errorf("Request() = %v, want code %s", err, CodeDied)
	}
	l.Close()
}
