package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgfsm/internal/cli"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
)

// TestFaultsOfServers: a server misbehaves in a call. The run ends where it should, with the truth about the effect, and the record of it
// replays when the server is gone. That a fault is the same one over every transport, mcp/upstream shows.
func TestFaultsOfServers(t *testing.T) {
	t.Parallel()
	var strayed atomic.Int32
	decoy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	t.Cleanup(func() {
		decoy.Close()
		if got := strayed.Load(); got != 0 {
			t.Errorf("requests to where servers point = %d, want 0", got)
		}
	})
	failed := []string{"/type", "failed", "/state", "failed", "/gate", "run", "/raw", "", "/typed", ""}
	answered := []string{"/type", "tool_result", "/state", "answered", "/code", ""}
	for _, tt := range []struct {
		deed, over   string
		code, effect string
		text         string // a part of the result
	}{
		{"honest", "stdio", "", "done", "hi"},
		{"dies-at-call", "stdio", "server_died", "unknown", ""},
		{"huge-at-call", "stdio", "result_too_large", "done", ""},
		{"redirects-at-call", "http", "redirect_refused", "unknown", ""},
		{"elicits-at-call", "http", "", "done", `\"code\":-32601`}, // the client does not know how
		{"echoes-in-json-in-result", "stdio", "", "done", ""},
		{"echoes-in-error", "http", "rpc_error", "unknown", ""},
	} {
		t.Run(tt.deed+"/"+tt.over, func(t *testing.T) {
			t.Parallel()
			server, called := mcptest.Configured(t, tt.deed, tt.over, decoy.URL)
			dir := clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf("version: 1\nservers: {puppet: {%s}}\nallowlist: allowlist.json\n", server),
				"allowlist.json", `{"puppet": ["look"]}`, "token", mcptest.Secret)
			r := command(clitest.Patient(t), nil, "call", "--json", "-c", filepath.Join(dir, "pgfsm.yaml"), "puppet", "look", "{}")
			if tt.code == "" {
				r.Want(t, cli.ExitYes, slices.Concat(answered, []string{"/effect", tt.effect})...)
			} else {
				r.Want(t, cli.ExitFailed, slices.Concat(failed, []string{"/effect", tt.effect, "/code", tt.code})...)
			}

			if calls := called(); calls != 1 {
				t.Errorf("calls that reached the server = %d, want 1", calls)
			}
			if text := r.Member("/raw/content/0/text"); !strings.Contains(text, tt.text) {
				t.Errorf("the result is %q, want %q in it", text, tt.text)
			}
			found := clitest.Traces(t, filepath.Join(dir, "traces"))
			if len(found) != 1 || found[0] != r.Member("/trace") {
				t.Fatalf("traces = %q, want one, %s", found, r.Member("/trace"))
			}
			if all := r.Stdout + r.Stderr + clitest.Read(t, found[0]); clitest.Holds(all, mcptest.Secret) {
				t.Error("the secret is shown or recorded")
			}
			replays(t, filepath.Join(dir, "traces"), 1)
		})
	}
}
