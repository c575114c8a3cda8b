package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/cli"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// TestInteropNPMServers: how many processes of three npm servers run for so many clients, and how much memory they take. The log has the figures
// of docs/operate/scale.md.
func TestInteropNPMServers(t *testing.T) {
	in := matrix(t)
	const most = 4 << 20 // kB
	for _, tt := range []struct {
		name, sessions string
		clients        int
		identities     bool // each client is another one
		processes      int  // at most
	}{
		{"5-clients-that-share-nothing", "session", 5, false, 15},
		{"66-clients-of-one-identity", "identity", 66, false, 3},
		{"40-identities", "identity", 40, true, 48},
		{"40-identities-share-all", "one", 40, true, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := in.gatewayOfThree(t, tt.sessions)
			tokens := make([]string, tt.clients)
			for i := range tokens {
				if tt.identities {
					tokens[i] = command(t.Context(), nil, "token", "create", "--role", "agent", "--name", fmt.Sprintf("agent-%d", i), "--json",
						"-c", g.config).Member("/secret")
				}
			}
			var all errgroup.Group
			all.SetLimit(8)
			for _, token := range tokens {
				all.Go(func() error {
					a := g.agent("/mcp", token)
					a.post(`{"jsonrpc":"2.0","id":"list","method":"tools/list"}`)
					for _, call := range [][2]string{
						{"everything__echo", `{"message":"hi"}`}, {"memory__read_graph", `{}`}, {"filesystem__list_allowed_directories", `{}`},
					} {
						if got := a.call(call[0], call[1]); got.Result == nil || got.Result.Meta.Decision.Code != "" {
							return fmt.Errorf("%s: %s", call[0], got.Raw)
						}
					}
					return nil
				})
			}
			if err := all.Wait(); err != nil {
				t.Fatalf("%v\n%s", err, g.stderr)
			}
			n := g.children()
			rss, pss := g.memory(t)
			t.Logf("%d clients, sessions: %s: %d processes of servers, with the gateway %d MB resident, %d MB of it their own share", tt.clients, tt.sessions, n,
				rss>>10, pss>>10)
			if n > tt.processes || n < min(3, tt.processes) || pss > most {
				t.Errorf("%d processes and %d kB, want at most %d and %d kB", n, pss, tt.processes, most)
			}
		})
	}
}

// gatewayOfThree is a gateway before three npm servers.
func (in interop) gatewayOfThree(t *testing.T, sessions string) *served {
	t.Helper()
	root := cli.Folder(t, "boiler.txt", boiler)
	var config bytes.Buffer
	config.WriteString("version: 1\nallowlist: allowlist.json\nledger: sqlite:pgfsm.db\nservers:\n")
	for _, s := range []struct{ name, arg, more string }{{"everything", "", ""}, {"memory", "", memoryIn(t.TempDir())}, {"filesystem", root, ""}} {
		args := fmt.Sprintf("%q", in.script("@modelcontextprotocol/server-"+s.name))
		if s.arg != "" {
			args += fmt.Sprintf(", %q", s.arg)
		}
		fmt.Fprintf(&config, "  %s: {type: stdio, command: %q, args: [%s], sessions: %s%s%s}\n", s.name, in.node, args, sessions, patientServer, s.more)
	}
	return serve(t, cli.Folder(t, "pgfsm.yaml", config.String(), "allowlist.json",
		`{"everything": ["echo"], "memory": ["read_graph"], "filesystem": ["list_allowed_directories"]}`))
}

// memory is that of the gateway and its servers in kB: what is resident, and that with shared pages divided by those who share them.
func (s *served) memory(t *testing.T) (rss, pss int) {
	t.Helper()
	pid := strconv.Itoa(s.cmd.Process.Pid)
	rollups, _ := filepath.Glob("/proc/[0-9]*/smaps_rollup")
	for _, path := range rollups {
		of := filepath.Base(filepath.Dir(path))
		if of != pid && parentOf(of) != pid {
			continue
		}
		text, err := os.ReadFile(path)
		check.NoError(t, err)
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			var kB int
			if _, err := fmt.Sscanf(lines.Text(), "Rss: %d kB", &kB); err == nil {
				rss += kB
			} else if _, err := fmt.Sscanf(lines.Text(), "Pss: %d kB", &kB); err == nil {
				pss += kB
			}
		}
	}
	return rss, pss
}

// parentOf is the parent of a process; empty if the process is gone.
func parentOf(pid string) string {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 2 {
		return ""
	}
	return fields[1]
}
