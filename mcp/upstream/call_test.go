package upstream

import (
	"errors"
	"net"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
)

// A listing finds that the server was started anew and makes a new session; a call does not.
func TestAStaleSessionIsReplacedByListOnly(t *testing.T) {
	srv := serveForgetful(t, honest, withStatus(404, ""))
	u := upstreams(t, Limits{}, srv.server())
	mustList(t, u)
	srv.restarts.Add(1)
	r := call(t.Context(), u, "web", `{}`)
	if r.Effect != EffectUnknown || r.Code != CodeUnreachable || !strings.Contains(r.Reason, "404") {
		t.Errorf("Call() on a forgotten session = %+v, want %s with 404, unknown", r, CodeUnreachable)
	}
	mustList(t, u)
	srv.restarts.Add(1)
	mustList(t, u) // the session that it had is stale again, and replaced within one listing
	if r := call(t.Context(), u, "web", `{}`); r.Effect != EffectDone {
		t.Errorf("Call() on a new session = %+v, want done", r)
	}
}

func TestHeadersInClearTextOnlyToThisMachine(t *testing.T) {
	r := newHTTPTarget(Server{URL: "http://localhost:1", Headers: []Header{{"x-key", "k"}}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.NoError(t, err)
	defer l.Close()
	conn, err := r.dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatalf("dial(loopback) = %v, want a connection", err)
	}
	conn.Close()
	var f *fault
	if err := r.checkLocal(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}); !errors.As(err, &f) || f.code != CodeOrigin {
		t.Errorf("checkLocal(192.0.2.1) = %v, want %s", err, CodeOrigin)
	}
}
