package demo_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/mcp/demo"
)

// patience bounds how long a test waits for what must happen.
const patience = 10 * time.Second

// serving returns the stacks of goroutines that belong to a fleet: servers, sessions and connections of either side.
func serving() []string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var stacks []string
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		ours := strings.Contains(stack, "pgfsm/mcp/demo.") || strings.Contains(stack, "go-sdk/") ||
			strings.Contains(stack, "net/http.")
		if ours && !strings.Contains(stack, "testing.tRunner") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

func waitForNone(t *testing.T) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		stacks := serving()
		if len(stacks) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d goroutines are left, the first:\n%s", len(stacks), stacks[0])
		}
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	for _, way := range ways {
		for _, clientFirst := range []bool{true, false} {
			name := way.name + "/client-stays"
			if clientFirst {
				name = way.name + "/client-leaves-first"
			}
			t.Run(name, func(t *testing.T) {
				waitForNone(t)
				f, err := demo.Listen(t.Context(), free)
				if err != nil {
					t.Fatal(err)
				}
				var sessions []*sdk.ClientSession
				for _, s := range f.Servers() {
					cs := mustConnect(t, f.URL(s.Name(), way.path), way.revision)
					mustTools(t, cs)
					sessions = append(sessions, cs)
				}
				if len(serving()) == 0 {
					t.Fatal("nothing is seen to serve, so this test shows nothing")
				}
				leave := func() {
					for _, cs := range sessions {
						cs.Close()
					}
				}
				if clientFirst {
					leave()
				}
				begin := time.Now()
				if err := f.Close(); err != nil {
					t.Errorf("Close() = %v", err)
				}
				if took := time.Since(begin); took > 4*time.Second {
					t.Errorf("Close() took %v, so it waited for its deadline", took)
				}
				leave()
				http.DefaultClient.CloseIdleConnections()
				waitForNone(t)
				if err := f.Close(); err != nil {
					t.Errorf("second Close() = %v", err)
				}
			})
		}
	}
}

func TestCloseEndsASilentConnection(t *testing.T) {
	f, err := demo.Listen(t.Context(), free)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(f.URL(demo.PolicyKB, "mcp"), "http://"), "/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begin := time.Now()
	if err := f.Close(); err != nil || time.Since(begin) > 4*time.Second {
		t.Errorf("Close() = %v after %v, want nil without waiting for a deadline", err, time.Since(begin))
	}
}

func TestContextClosesTheFleet(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f, err := demo.Listen(ctx, free)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	waitForNone(t)
	if err := f.Close(); err != nil {
		t.Errorf("Close() after the context was done = %v", err)
	}
}

func TestListenRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	const loopback = "is not a loopback address"
	tests := []struct {
		name  string
		addrs []string
		want  []string
	}{
		{"port-in-use", []string{"127.0.0.1:0", "127.0.0.1:0", taken.Addr().String()},
			[]string{demo.PolicyKB, taken.Addr().String(), "in use", "stop the other program, or give another port"}},
		{"every-interface", []string{"0.0.0.0:0", "127.0.0.1:0", "127.0.0.1:0"}, []string{demo.SharePoint, loopback}},
		{"every-interface-unnamed", []string{":0", "127.0.0.1:0", "127.0.0.1:0"}, []string{demo.SharePoint, loopback}},
		{"every-interface-ipv6", []string{"127.0.0.1:0", "[::]:0", "127.0.0.1:0"}, []string{demo.ServiceNow, loopback}},
		{"another-machine", []string{"192.0.2.1:0", "127.0.0.1:0", "127.0.0.1:0"}, []string{"192.0.2.1:0", loopback}},
		{"name", []string{"localhost:0", "127.0.0.1:0", "127.0.0.1:0"}, []string{"localhost:0", loopback}},
		{"number-in-disguise", []string{"2130706433:0", "127.0.0.1:0", "127.0.0.1:0"}, []string{loopback}},
		{"no-port", []string{"127.0.0.1", "127.0.0.1:0", "127.0.0.1:0"}, []string{"missing port"}},
		{"too-few", []string{"127.0.0.1:0"}, []string{"needs 3 addresses", "got 1"}},
		{"none", nil, []string{"needs 3 addresses", "got 0"}},
		{"too-many", append([]string{"127.0.0.1:0"}, free...), []string{"got 4"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := demo.Listen(t.Context(), tt.addrs)
			if err == nil {
				f.Close()
				t.Fatalf("Listen(%q) = a fleet, want an error", tt.addrs)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Listen(%q) = %q, want it to say %q", tt.addrs, err, want)
				}
			}
			waitForNone(t)
		})
	}
}

func TestURL(t *testing.T) {
	f := mustListen(t)
	for _, tt := range []struct{ name, transport, want string }{
		{demo.PolicyKB, "sse", "/sse"}, {demo.PolicyKB, "mcp", "/mcp"},
		{demo.PolicyKB, "stdio", ""}, {demo.PolicyKB, "", ""}, {"mcp-other", "sse", ""}, {"", "", ""},
	} {
		got := f.URL(tt.name, tt.transport)
		if (tt.want == "" && got != "") || !strings.HasSuffix(got, tt.want) ||
			(got != "" && !strings.HasPrefix(got, "http://127.0.0.1:")) {
			t.Errorf("URL(%q, %q) = %q, want it to end in %q", tt.name, tt.transport, got, tt.want)
		}
	}
}

func TestHandlerAnswersThisMachineOnly(t *testing.T) {
	server := demo.Servers()[0]
	handler := server.Handler()
	t.Cleanup(func() {
		for session := range server.MCP().Sessions() {
			session.Close()
		}
	})
	tests := []struct {
		name, host string
		origins    []string
		want       int
	}{
		{"loopback", "127.0.0.1:5101", nil, 200},
		{"loopback-other", "127.8.9.1", nil, 200},
		{"loopback-ipv6", "[::1]:5101", nil, 200},
		{"localhost", "localhost:5101", nil, 200},
		{"local-origin", "127.0.0.1:5101", []string{"http://localhost:6274"}, 200},
		{"rebound-name", "attacker.example:5101", nil, 403},
		{"name-that-begins-like-loopback", "127.0.0.1.attacker.example", nil, 403},
		{"address-of-the-network", "192.0.2.1:5101", nil, 403},
		{"no-host", "", nil, 403},
		{"foreign-origin", "127.0.0.1:5101", []string{"https://attacker.example"}, 403},
		{"origin-null", "127.0.0.1:5101", []string{"null"}, 403},
		{"origin-empty", "127.0.0.1:5101", []string{""}, 403},
		{"origin-of-a-file", "127.0.0.1:5101", []string{"file://localhost"}, 403},
		{"second-origin-foreign", "127.0.0.1:5101", []string{"http://127.0.0.1", "http://attacker.example"}, 403},
		{"origin-with-user", "127.0.0.1:5101", []string{"http://localhost@attacker.example"}, 403},
	}
	for _, path := range []string{"/mcp", "/sse"} {
		for _, tt := range tests {
			t.Run(path[1:]+"/"+tt.name, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				method, body := http.MethodPost, initialize
				if path == "/sse" {
					method, body = http.MethodGet, ""
					cancel() // ends the stream as soon as it has begun
				}
				req := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
				req.Host = tt.host
				req.Header["Origin"] = tt.origins
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Accept", "application/json, text/event-stream")
				rec := httptest.NewRecorder()
				handler.ServeHTTP(rec, req)
				if rec.Code != tt.want {
					t.Errorf("%s %s, Host %q, Origin %q = %d, want %d", method, path, tt.host, tt.origins, rec.Code, tt.want)
				}
			})
		}
	}
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
	`"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

func TestBodyLimit(t *testing.T) {
	f := mustListen(t)
	got := map[string]int{}
	for name, size := range map[string]int{"at-limit": demo.MaxBodyBytes, "past-limit": demo.MaxBodyBytes + 1} {
		body := initialize + strings.Repeat(" ", size-len(initialize))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL(demo.PolicyKB, "mcp"),
			bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		got[name] = res.StatusCode
	}
	want := map[string]int{"at-limit": http.StatusOK, "past-limit": http.StatusRequestEntityTooLarge}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}
