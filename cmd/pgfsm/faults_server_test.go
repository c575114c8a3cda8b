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
	over      []string // transports, in which the deed makes sense
	code      int
	members   []string
	calls     int
	impatient bool // it takes a short timeout to see it
}

// listedCode is where a trace has the code of the only server, when it was listed.
const listedCode = "/steps/1/event/servers/0/code"

var (
	everyTransport = []string{"stdio", "sse", "http"}
	overHTTP       = []string{"sse", "http"}
)

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
	stdio := []string{"stdio"}
	return []serverFault{
		{"honest", everyTransport, exitYes, answered, 1, false},
		{"hangs-at-initialize", everyTransport, exitCould, noServers("server_timeout"), 0, true},
		{"hangs-at-list", everyTransport, exitCould, noServers("server_timeout"), 0, true},
		{"hangs-at-call", everyTransport, exitCould, failed("server_timeout", "unknown"), 1, true},
		{"dies-at-initialize", stdio, exitCould, noServers("server_died"), 0, false},
		{"dies-at-initialize", overHTTP, exitCould, noServers("server_unreachable"), 0, false},
		{"dies-at-list", stdio, exitCould, noServers("server_died"), 0, false},
		{"dies-at-list", overHTTP, exitCould, noServers("server_unreachable"), 0, false},
		{"dies-at-call", stdio, exitCould, failed("server_died", "unknown"), 1, false},
		{"dies-at-call", overHTTP, exitCould, failed("server_unreachable", "unknown"), 1, false},
		{"huge-at-list", everyTransport, exitCould, noServers("catalog_too_large"), 0, false},
		{"huge-at-call", everyTransport, exitCould, failed("result_too_large", "done"), 1, false},
		{"no-json-at-list", everyTransport, exitCould, noServers("server_protocol"), 0, false},
		{"no-json-at-call", everyTransport, exitCould, failed("server_protocol", "unknown"), 1, false},
		{"no-rpc-at-list", everyTransport, exitCould, noServers("server_protocol"), 0, false},
		{"no-rpc-at-call", everyTransport, exitCould, failed("server_protocol", "unknown"), 1, false},
		{"redirects-at-connect", overHTTP, exitCould, noServers("redirect_refused"), 0, false},
		{"redirects-at-list", overHTTP, exitCould, noServers("redirect_refused"), 0, false},
		{"redirects-at-call", overHTTP, exitCould, failed("redirect_refused", "unknown"), 1, false},
		{"endpoint-elsewhere", []string{"sse"}, exitCould, noServers("origin_refused"), 0, false},
		{"elicits-at-list", everyTransport, exitYes, answered, 1, false},
		{"elicits-at-call", everyTransport, exitYes, answered, 1, false},
		{"echoes-in-result", everyTransport, exitYes, append(slices.Clone(answered), "/raw/content/0/text", masked), 1,
			false},
		{"echoes-in-json-in-result", everyTransport, exitYes, answered, 1, false},
		{"echoes-in-error", everyTransport, exitCould, failed("rpc_error", "unknown"), 1, false},
	}
}

// TestFaultsOfServers: a server that misbehaves, over every transport in which it can. The run ends where it should,
// with the truth about the effect, and the record of it replays when the server is gone.
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
		for _, transport := range tt.over {
			t.Run(tt.deed+"/"+transport, func(t *testing.T) {
				t.Parallel()
				r, traces, calls := misled(t, tt, transport, decoy.URL)
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
}

// misled runs a call to a player. A timeout that is too short for a busy machine shows another fault than the one that
// is looked for, so it is tried again with more time.
func misled(t *testing.T, f serverFault, transport, decoy string) (r ran, traces string, calls int) {
	t.Helper()
	for timeout := 500; ; timeout *= 4 {
		given := ""
		if f.impatient {
			given = fmt.Sprintf(", timeout: %[1]dms, connect_timeout: %[1]dms", timeout)
		}
		server, called := playerServer(t, f.deed, transport, decoy)
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
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		log := filepath.Join(t.TempDir(), "calls")
		server = fmt.Sprintf(`type: stdio, command: %q, args: [%s, %s, %q], env: {PLAYER_SECRET: "${file:token}"}`,
			exe, playsWord, name, log)
		return server, func() int {
			text, err := os.ReadFile(log)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			return strings.Count(string(text), "\n")
		}
	}
	all := deeds(playerSecret)
	all["redirects-at-connect"] = deed{redirect: decoy, method: map[string]string{"http": "initialize"}[transport]}
	all["redirects-at-list"] = deed{redirect: decoy, method: "tools/list"}
	all["redirects-at-call"] = deed{redirect: decoy, method: "tools/call"}
	all["endpoint-elsewhere"] = deed{endpoint: decoy + "/post"}
	d, known := all[name]
	if !known {
		t.Fatalf("there is no deed %q", name)
	}
	var count atomic.Int32
	s := newStage(t, d, transport == "sse", func() { count.Add(1) })
	server = fmt.Sprintf(`type: %s, url: %q, headers: {Authorization: "Bearer ${file:token}"}`, transport, s.URL)
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

// TestFaultsCoverTheTransports: no fault of the table was left out of a transport without a reason.
func TestFaultsCoverTheTransports(t *testing.T) {
	seen := map[string][]string{}
	for _, f := range serverFaults() {
		for _, transport := range f.over {
			if slices.Contains(seen[f.deed], transport) {
				t.Errorf("%s over %s stands twice", f.deed, transport)
			}
			seen[f.deed] = append(seen[f.deed], transport)
		}
	}
	for deed, over := range seen {
		want := len(everyTransport)
		switch {
		case strings.HasPrefix(deed, "redirects-"):
			want = len(overHTTP) // there is no redirect over stdio
		case deed == "endpoint-elsewhere":
			want = 1 // only SSE has an endpoint event
		}
		if len(over) != want {
			t.Errorf("%s is shown over %q, want %d transports", deed, over, want)
		}
	}
	if len(seen) < 15 {
		t.Errorf("there are %d faults, want at least 15", len(seen))
	}
}
