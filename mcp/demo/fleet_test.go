package demo_test

import (
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/internal/test/check"
	"pgfsm/mcp/demo"
)

// noLeak fails the test if goroutines are left over at its end.
func noLeak(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d goroutines are left, before there were %d", runtime.NumGoroutine(), before)
			}
		}
	})
}

func TestCloseLeavesNothing(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			noLeak(t)
			f, err := demo.Listen(t.Context(), free)
			check.NoError(t, err)
			var sessions []*sdk.ClientSession
			for _, s := range f.Servers() {
				cs := mustConnect(t, f.URL(s.Name(), way.path), way.revision)
				mustTools(t, cs)
				sessions = append(sessions, cs)
			}
			if err := f.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
			for _, cs := range sessions {
				cs.Close()
			}
			if err := f.Close(); err != nil {
				t.Errorf("second Close() = %v", err)
			}
		})
	}
}

func TestListenRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	check.NoError(t, err)
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
		{"name", []string{"localhost:0", "127.0.0.1:0", "127.0.0.1:0"}, []string{"localhost:0", loopback}},
		{"no-port", []string{"127.0.0.1", "127.0.0.1:0", "127.0.0.1:0"}, []string{"missing port"}},
		{"too-few", []string{"127.0.0.1:0"}, []string{"needs 3 addresses", "got 1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
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
		})
	}
}

func TestServersAnswerThisMachineOnly(t *testing.T) {
	f := mustListen(t)
	for _, tt := range []struct {
		name, host, origin string // empty: as the client sends it
		want               int
	}{
		{"loopback", "", "", http.StatusOK},
		{"localhost", "localhost:5101", "", http.StatusOK},
		{"rebound-name", "attacker.example:5101", "", http.StatusForbidden},
		{"address-of-the-network", "192.0.2.1:5101", "", http.StatusForbidden},
		{"foreign-origin", "", "https://attacker.example", http.StatusForbidden},
		{"origin-null", "", "null", http.StatusForbidden},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL(demo.PolicyKB, "mcp"), strings.NewReader(initialize))
			check.NoError(t, err)
			req.Host = tt.host
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			if tt.origin != "" {
				req.Header.Set("Origin", tt.origin)
			}
			res, err := http.DefaultClient.Do(req)
			check.NoError(t, err)
			res.Body.Close()
			if res.StatusCode != tt.want {
				t.Errorf("status = %d, want %d", res.StatusCode, tt.want)
			}
		})
	}
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
	`"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
