package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/test/cli"
	"pgfsm/traces/ledger"
)

// TestServeLeavesNothingBehind: after sessions with a stdio server, the gateway has no child and no descriptor more than before.
func TestServeLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, sessions := range []string{"identity, idle_timeout: 1s", "session"} {
		t.Run(sessions, func(t *testing.T) { leavesNothingBehind(t, sessions) })
	}
}

func leavesNothingBehind(t *testing.T, sessions string) {
	dir := cli.Folder(t, "pgfsm.yaml", fmt.Sprintf("version: 1\nservers: {echo: {type: stdio, command: /bin/sh, args: [-c, %q], sessions: %s}}\n"+
		"allowlist: allowlist.json\nserve: {record: none}\n", honestScript, sessions), "allowlist.json", `{"echo": ["look"]}`)
	s := serve(t, dir)
	round := func(sessions int) {
		var all []*agent
		for range sessions {
			a := s.agent("/servers/echo/mcp", "")
			a.gets(t, "look", `{}`, "hi")
			all = append(all, a)
		}
		for _, a := range all {
			a.remove()
		}
	}
	round(2) // what is made once is made
	rest := func() (fds, children int) { return s.descriptors(), s.children() }
	within, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	settled := func(want int) (fds int) {
		err := ledger.Poll(within, 50*time.Millisecond, func() (bool, error) {
			f, c := rest()
			fds = f
			return c == 0 && (want == 0 || f <= want), nil
		})
		if err != nil {
			f, c := rest()
			t.Fatalf("%d descriptors, want at most %d, and %d children\n%s", f, want, c, s.stderr)
		}
		return fds
	}
	before := settled(0)
	for range 3 {
		round(10)
	}
	settled(before + 4) // connections of the test's own client come and go
}

// honestScript answers as a server with one tool, in a shell.
const honestScript = `while read -r line; do id=${line#*\"id\":}; id=${id%%,*}; case "$line" in ` +
	`*initialize\"*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"sh\",\"version\":\"1\"}}}";; ` +
	`*tools/list*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"look\",\"inputSchema\":{\"type\":\"object\"}}]}}";; ` +
	`*tools/call*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}}";; esac; done`

func (s *served) descriptors() int {
	all, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	return len(all)
}

// children are the processes whose parent is the gateway.
func (s *served) children() (n int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.cmd.Process.Pid))
	for _, path := range lists {
		text, _ := os.ReadFile(path) // the thread may have ended
		n += len(strings.Fields(string(text)))
	}
	return n
}
