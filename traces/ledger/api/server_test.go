package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

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

// A service listens under the names that browsers on this machine have for it.
func TestHosts(t *testing.T) {
	d := newDesk(t)
	on, err := loopback.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(on.Addr().String())
	h := api.New(api.Options{Ledger: d.Ledger, Hosts: loopback.Hosts(on)})
	on.Close()
	for name, want := range map[string]int{ // in any order: each stands alone
		"127.0.0.1:" + port: 200, "localhost:" + port: 200, "LOCALHOST:" + port: 200, "[::1]:" + port: 200,
		"127.0.0.1:1": 421, "localhost": 421, "localhost." + ":" + port: 421, "127.0.0.1.:" + port: 421,
	} {
		w := dial(t, serves(t, h, api.Limits{}))
		w.writes("GET /healthz HTTP/1.1\r\nHost: " + name + "\r\n\r\n")
		if got := w.reads(); got.status != want {
			t.Errorf("Host %s = %d, want %d", name, got.status, want)
		}
	}
}

// Who is slow, or sends too much, is let go of.
func TestSlowAndLargeCalls(t *testing.T) {
	d := newDesk(t)
	q := d.Hold(1)
	token := d.token(ledger.RoleApprover, alice)
	to := serves(t, d.handler, api.Limits{Header: time.Second, Read: 2 * time.Second})
	t.Run("slow-header", func(t *testing.T) {
		w := dial(t, to)
		w.writes("GET /pending HTTP/1.1\r\nHost: ")
		w.closed()
	})
	t.Run("slow-body", func(t *testing.T) {
		w := dial(t, to)
		w.writes("POST /approve/" + q.RunID + " HTTP/1.1\r\nHost: " + service + "\r\nAuthorization: Bearer " + token +
			"\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
		w.reads().want(t, 408, api.BodyTooSlow)
		w.closed()
	})
	t.Run("large-header", func(t *testing.T) {
		w := dial(t, to)
		_, err := io.WriteString(w.c, "GET /pending HTTP/1.1\r\nHost: "+service+"\r\nX-A: "+strings.Repeat("a", 64<<10)+"\r\n\r\n")
		if err != nil {
			return // it did not even take it
		}
		got, err := http.ReadResponse(w.in, nil)
		if err == nil && got.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("status = %d, want %d", got.StatusCode, http.StatusRequestHeaderFieldsTooLarge)
		}
	})
	if n := len(d.Votes(q.RunID)); n != 0 {
		t.Errorf("%d votes are recorded, want none", n)
	}
}

// An approver decides at once, whatever number of connections ask nothing, or asked for health and stay.
func TestFloodsKeepNobodyOut(t *testing.T) {
	for _, tt := range []struct {
		name, says string
		count      int
	}{
		{"idle", "GET /healthz HTTP/1.1\r\nHost: " + service + "\r\n\r\n", 260},
		{"refused", "GET /pending HTTP/1.1\r\nHost: " + service + "\r\nAuthorization: Bearer x\r\n\r\n", 260},
		{"silent", "", 1500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t)
			q := d.Hold(1)
			to := serves(t, d.handler, api.Limits{})
			call := func(method, path, body string) string {
				return method + " " + path + " HTTP/1.1\r\nHost: " + service + "\r\nAuthorization: Bearer " + d.token(ledger.RoleApprover, alice) +
					"\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
			}
			reader := dial(t, to)
			reader.writes(call("GET", "/pending", ""))
			reader.reads().want(t, 200, "")
			for range tt.count {
				w := dial(t, to)
				if w.writes(tt.says); tt.says != "" {
					w.reads()
				}
			}
			approver := dial(t, to)
			approver.writes(call("POST", "/approve/"+q.RunID, `{"expected_digest":"`+string(q.Binding)+`"}`))
			approver.reads().want(t, 200, "")
			reader.writes(call("GET", "/pending", "")) // who was there before still is
			reader.reads().want(t, 200, "")
		})
	}
}

// A call that is under way when the service is stopped is finished; new ones are not taken.
func TestStopFinishesCalls(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-leave
		io.WriteString(w, "done")
	})
	on, err := loopback.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
	if got := w.reads(); string(got.body) != "done" {
		t.Errorf("the call got %q", got.body)
	}
	if err := <-ended; err != nil {
		t.Errorf("Serve() = %v", err)
	}
}

// A call that does not end is cut off after the time of grace, and the service says so.
func TestStopCutsOff(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	defer close(leave)
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	})
	on, err := loopback.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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

// The listener breaks: the service ends and says so.
func TestServeFails(t *testing.T) {
	on, err := loopback.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	on.Close()
	if err := api.Serve(context.Background(), on, http.NotFoundHandler()); err == nil || !strings.Contains(fmt.Sprint(err), "closed") {
		t.Errorf("Serve() = %v, want an error", err)
	}
}
