package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"pgfsm/internal/secret"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/cli"
	"pgfsm/internal/test/mcptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// A serverFault is a server that misbehaves: what it does, and how the run ends.
type serverFault struct {
	deed      string
	over      string // the transport
	code      int
	members   []string
	calls     int
	impatient bool // it takes a short timeout to see it
}

// listedCode is where a trace has the code of the only server, when it was listed.
const listedCode = "/steps/1/event/servers/0/code"

func serverFaults() []serverFault {
	noServers := func(code string) []string {
		return []string{"/type", "failed", "/state", "failed", "/gate", "run", "/code", "no_servers", "/effect", "not_sent",
			listedCode, code}
	}
	failed := func(code, effect string) []string {
		return []string{"/type", "failed", "/state", "failed", "/gate", "run", "/code", code, "/effect", effect,
			"/raw", "", "/typed", ""}
	}
	answered := []string{"/type", "tool_result", "/state", "answered", "/effect", "done", "/code", ""}
	return []serverFault{
		{"honest", "stdio", exitYes, answered, 1, false},
		{"hangs-at-list", "stdio", exitCould, noServers("server_timeout"), 0, true},
		{"hangs-at-call", "stdio", exitCould, failed("server_timeout", "unknown"), 1, true},
		{"dies-at-call", "stdio", exitCould, failed("server_died", "unknown"), 1, false},
		{"dies-at-call", "http", exitCould, failed("server_unreachable", "unknown"), 1, false},
		{"huge-at-list", "http", exitCould, noServers("catalog_too_large"), 0, false},
		{"huge-at-call", "stdio", exitCould, failed("result_too_large", "done"), 1, false},
		{"no-json-at-call", "http", exitCould, failed("server_protocol", "unknown"), 1, false},
		{"redirects-at-call", "http", exitCould, failed("redirect_refused", "unknown"), 1, false},
		{"elicits-at-call", "http", exitYes, answered, 1, false},
		{"echoes-in-result", "http", exitYes, append(slices.Clone(answered), "/raw/content/0/text", secret.Mask), 1, false},
		{"echoes-in-json-in-result", "stdio", exitYes, answered, 1, false},
		{"echoes-in-error", "http", exitCould, failed("rpc_error", "unknown"), 1, false},
	}
}

// TestFaultsOfServers: a server that misbehaves. The run ends where it should, with the truth about the effect, and the record of it
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
	for _, tt := range serverFaults() {
		t.Run(tt.deed+"/"+tt.over, func(t *testing.T) {
			t.Parallel()
			r, traces, calls := misled(t, tt, decoy.URL)
			members := tt.members
			if n := len(members) - 2; members[n] == listedCode {
				cli.Result{Code: r.Code, Stdout: cli.Read(t, r.Member("/trace"))}.Want(t, tt.code, members[n:]...)
				members = members[:n]
			}
			r.Want(t, tt.code, members...)
			if calls != tt.calls {
				t.Errorf("calls that reached the server = %d, want %d", calls, tt.calls)
			}
			if tt.code != exitYes && r.Member("/reason") == "" {
				t.Error("there is no reason")
			}
			wantRefusal(t, tt.deed, r)
			found := cli.Traces(t, traces)
			if len(found) != 1 || found[0] != r.Member("/trace") {
				t.Fatalf("traces = %q, want one, %s", found, r.Member("/trace"))
			}
			if all := r.Stdout + r.Stderr + cli.Read(t, found[0]); cli.Holds(all, mcptest.Secret) {
				t.Error("the secret is shown or recorded")
			}
			replays(t, traces, 1)
		})
	}
}

// misled runs a call to a player. A timeout that is too short for a busy machine shows another fault than the one that
// is looked for, so it is tried again with more time.
func misled(t *testing.T, f serverFault, decoy string) (r cli.Result, traces string, calls int) {
	t.Helper()
	for timeout := 500; ; timeout *= 4 {
		given := ""
		if f.impatient {
			given = fmt.Sprintf(", timeout: %[1]dms, connect_timeout: %[1]dms", timeout)
		}
		server, called := mcptest.Configured(t, f.deed, f.over, decoy)
		dir := cli.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {puppet: {%s%s}}
allowlist: allowlist.json
`, server, given), "allowlist.json", `{"puppet": ["look"]}`, "token", mcptest.Secret)
		r := command(cli.Patient(t), nil, "call", "--json", "-c", filepath.Join(dir, "pgfsm.yaml"), "puppet", "look", "{}")
		if n := called(); !f.impatient || n >= f.calls || timeout > 30_000 {
			return r, filepath.Join(dir, "traces"), n
		}
	}
}

// wantRefusal holds the client to what it says to a server that asks it for something: that it does not know how.
func wantRefusal(t *testing.T, deed string, r cli.Result) {
	t.Helper()
	if deed != "elicits-at-call" {
		return
	}
	raw, err := cli.At([]byte(r.Stdout), "/raw/content/0/text")
	check.NoError(t, err)
	said, err := jsontext.AppendUnquote(nil, raw)
	check.NoError(t, err)
	code, err := cli.At(said, "/error/code")
	if err != nil || string(code) != "-32601" {
		t.Errorf("the client answered %s, want error -32601", said)
	}
}
