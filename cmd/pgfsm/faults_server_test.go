package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// playerSecret is what the configuration lets a player know.
const playerSecret = "player-secret-4711"

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
		{"honest", "http", exitYes, answered, 1, false},
		{"hangs-at-initialize", "http", exitCould, noServers("server_timeout"), 0, true},
		{"hangs-at-list", "stdio", exitCould, noServers("server_timeout"), 0, true},
		{"hangs-at-call", "stdio", exitCould, failed("server_timeout", "unknown"), 1, true},
		{"dies-at-initialize", "stdio", exitCould, noServers("server_died"), 0, false},
		{"dies-at-list", "http", exitCould, noServers("server_unreachable"), 0, false},
		{"dies-at-call", "stdio", exitCould, failed("server_died", "unknown"), 1, false},
		{"dies-at-call", "http", exitCould, failed("server_unreachable", "unknown"), 1, false},
		{"huge-at-list", "http", exitCould, noServers("catalog_too_large"), 0, false},
		{"huge-at-call", "stdio", exitCould, failed("result_too_large", "done"), 1, false},
		{"no-json-at-list", "stdio", exitCould, noServers("server_protocol"), 0, false},
		{"no-json-at-call", "http", exitCould, failed("server_protocol", "unknown"), 1, false},
		{"redirects-at-list", "http", exitCould, noServers("redirect_refused"), 0, false},
		{"redirects-at-call", "http", exitCould, failed("redirect_refused", "unknown"), 1, false},
		{"elicits-at-call", "http", exitYes, answered, 1, false},
		{"echoes-in-result", "http", exitYes, append(slices.Clone(answered), "/raw/content/0/text", masked), 1, false},
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
				ran{code: r.code, stdout: textOf(t, r.member("/trace"))}.want(t, tt.code, members[n:]...)
				members = members[:n]
			}
			r.want(t, tt.code, members...)
			if calls != tt.calls {
				t.Errorf("calls that reached the server = %d, want %d", calls, tt.calls)
			}
			if tt.code != exitYes && r.member("/reason") == "" {
				t.Error("there is no reason")
			}
			wantRefusal(t, tt.deed, r)
			found := tracesOf(t, traces)
			if len(found) != 1 || found[0] != r.member("/trace") {
				t.Fatalf("traces = %q, want one, %s", found, r.member("/trace"))
			}
			if all := r.stdout + r.stderr + textOf(t, found[0]); holds(all, playerSecret) {
				t.Error("the secret is shown or recorded")
			}
			replays(t, traces, 1)
		})
	}
}

// misled runs a call to a player. A timeout that is too short for a busy machine shows another fault than the one that
// is looked for, so it is tried again with more time.
func misled(t *testing.T, f serverFault, decoy string) (r ran, traces string, calls int) {
	t.Helper()
	for timeout := 500; ; timeout *= 4 {
		given := ""
		if f.impatient {
			given = fmt.Sprintf(", timeout: %[1]dms, connect_timeout: %[1]dms", timeout)
		}
		server, called := playerServer(t, f.deed, f.over, decoy)
		dir := folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {puppet: {%s%s}}
allowlist: allowlist.json
`, server, given), "allowlist.json", `{"puppet": ["look"]}`, "token", playerSecret)
		r := command(patient(t), nil, "call", "--json", "-c", filepath.Join(dir, "pgfsm.yaml"), "puppet", "look", "{}")
		if n := called(); !f.impatient || n >= f.calls || timeout > 30_000 {
			return r, filepath.Join(dir, "traces"), n
		}
	}
}

// playerServer starts a player, or says how it is started, and returns what the configuration says of it and what
// counts its calls.
func playerServer(t *testing.T, name, transport, decoy string) (server string, called func() int) {
	t.Helper()
	if transport == "stdio" {
		log := filepath.Join(t.TempDir(), "calls")
		server = fmt.Sprintf(`type: stdio, command: player, args: [%s, %q], env: {PLAYER_SECRET: "${file:token}"}`, name, log)
		return server, func() int {
			text, err := os.ReadFile(log)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			return strings.Count(string(text), "\n")
		}
	}
	all := deeds(playerSecret)
	all["redirects-at-list"] = deed{redirect: decoy, method: "tools/list"}
	all["redirects-at-call"] = deed{redirect: decoy, method: "tools/call"}
	d, known := all[name]
	if !known {
		t.Fatalf("there is no deed %q", name)
	}
	var count atomic.Int32
	s := newStage(t, d, func() { count.Add(1) })
	server = fmt.Sprintf(`type: http, url: %q, headers: {Authorization: "Bearer ${file:token}"}`, s.URL)
	return server, func() int { return int(count.Load()) }
}

// wantRefusal holds the client to what it says to a server that asks it for something: that it does not know how.
func wantRefusal(t *testing.T, deed string, r ran) {
	t.Helper()
	if deed != "elicits-at-call" {
		return
	}
	raw, err := at([]byte(r.stdout), "/raw/content/0/text")
	if err != nil {
		t.Fatal(err)
	}
	said, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		t.Fatal(err)
	}
	code, err := at(said, "/error/code")
	if err != nil || string(code) != "-32601" {
		t.Errorf("the client answered %s, want error -32601", said)
	}
}
