package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/internal/web/loopback"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
)

func TestHostNames(t *testing.T) {
	for name, want := range map[string]bool{ // in any order: each stands alone
		"approvals.example.com": true, "approvals.example.com:8443": true, "[::1]:80": true, "10.0.0.1": true, "a": true,
		"": false, "http://a": false, "a/b": false, "a b": false, "a:b": false, "-a": false, "a,b": false, "*": false, "a:123456": false,
	} {
		if got := api.HostName(name); got != want {
			t.Errorf("HostName(%q) = %t, want %t", name, got, want)
		}
	}
}

// A body that comes too slowly is refused, and its connection closed.
func TestSlowBody(t *testing.T) {
	d := newFixture(t)
	q := d.Hold(1)
	token := d.token(ledger.RoleApprover, alice)
	to := serves(t, d.handler, api.Limits{Read: time.Second})
	w := dial(t, to)
	w.writes("POST /approve/" + q.RunID + " HTTP/1.1\r\nHost: " + here + "\r\nAuthorization: Bearer " + token +
		"\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	w.reads().wantCode(t, 408, api.BodyTooSlow)
	w.closed()
	if n := len(d.Votes(q.RunID)); n != 0 {
		t.Errorf("%d votes are recorded, want none", n)
	}
}

// A call that is under way when the here is stopped is finished; new ones are not taken.
func TestStopFinishesCalls(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-leave
		io.WriteString(w, "done")
	})
	on, err := loopback.Listen("127.0.0.1:0")
	check.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- api.ServeWithin(ctx, on, h, api.Limits{}) }()
	w := dial(t, on.Addr())
	w.writes("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-entered
	stop()
	for { // until it does not listen any more
		c, err := net.Dial("tcp", on.Addr().String())
		if err != nil {
			break
		}
		c.Close()
	}
	close(leave)
	if got := w.reads(); got.body != "done" {
		t.Errorf("the call got %q", got.body)
	}
	if err := <-ended; err != nil {
		t.Errorf("Serve() = %v", err)
	}
}

// A call that does not end is cut off after the time of grace, and the here says so.
func TestStopCutsOff(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	defer close(leave)
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	})
	on, err := loopback.Listen("127.0.0.1:0")
	check.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- api.ServeWithin(ctx, on, h, api.Limits{Grace: 50 * time.Millisecond}) }()
	dial(t, on.Addr()).writes("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-entered
	stop()
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Serve() = %v, want %v", err, context.DeadlineExceeded)
	}
}

// The listener breaks: the here ends and says so.
func TestServeFails(t *testing.T) {
	on, err := loopback.Listen("127.0.0.1:0")
	check.NoError(t, err)
	on.Close()
	if err := api.Serve(context.Background(), on, http.NotFoundHandler()); err == nil || !strings.Contains(fmt.Sprint(err), "closed") {
		t.Errorf("Serve() = %v, want an error", err)
	}
}
