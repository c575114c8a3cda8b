package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"pgfsm/internal/test/cli"
	"pgfsm/internal/test/mcptest"
	"strings"
	"sync/atomic"
	"testing"
)

// newForgetful is a puppet with sessions. After restart it refuses those of before as MCP says, with an error for the request.
func newForgetful(t *testing.T) (p *mcptest.Server, restart func()) {
	t.Helper()
	p = mcptest.New(t, mcptest.But("tools/list", mcptest.TwoTools))
	var restarts atomic.Int32
	p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		now := fmt.Sprint("session-", restarts.Load())
		if id := r.Header.Get("Mcp-Session-Id"); id != "" && id != now {
			request, _ := cli.At(body, "/id")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"Session not found"}}`, request)
			return
		}
		w.Header().Set("Mcp-Session-Id", now)
		r.Body = io.NopCloser(bytes.NewReader(body))
		p.ServeHTTP(w, r)
	})
	return p, func() { restarts.Add(1) }
}

// TestServeServerThatLostItsSessions shows that a call over a lost session ends as unknown, and that the next one works. If the tools are listed
// before, the list and the call work at once.
func TestServeServerThatLostItsSessions(t *testing.T) {
	t.Parallel()
	list := func(raw []byte) bool { return strings.Contains(string(raw), `"look"`) }
	for _, tt := range []struct{ name, more string }{
		{"server", ""},
		{"server-that-is-listed-each-time", "catalog_max_age: 0s\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, restart := newForgetful(t)
			dir := gatewayFolder(t, p, tt.more)
			s := serve(t, dir)
			one, two := s.agent("/servers/echo/mcp", ""), s.agent("/servers/echo/mcp", "")
			lists := []func() []byte{
				func() []byte { _, body := one.post(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`); return body },
				func() []byte { _, body := two.post(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`); return body },
			}
			calls := []func() answered{
				func() answered { return one.call("look", `{"n":1}`) },
				func() answered { return two.call("look", `{"n":1}`) },
			}
			for i, call := range calls {
				if got := call(); got.code() != "hi" {
					t.Fatalf("client %d: %s\n%s", i, got.Raw, s.stderr)
				}
			}
			restart()
			for i, call := range calls {
				got := call()
				if tt.more != "" || i == 1 { // client 1 shares the session of client 0, which has a new one
					if got.code() != "hi" {
						t.Errorf("client %d, call after the restart: %s, want the result", i, got.Raw)
					}
					continue
				}
				if got.code() != "server_unreachable" || got.Result.Meta.Decision.Effect != "unknown" {
					t.Errorf("client %d, first call after the restart: %s, want server_unreachable, unknown", i, got.Raw)
				}
				if got := call(); got.code() != "hi" {
					t.Errorf("client %d, second call after the restart: %s, want the result", i, got.Raw)
				}
			}
			restart()
			for i, ask := range lists {
				if got := ask(); !list(got) {
					t.Errorf("client %d, first list after the restart: %s, want the tool", i, got)
				}
			}
		})
	}
}
