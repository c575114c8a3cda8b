package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
)

// granted is a configuration that names no ledger, a server that counts calls, and the folder for grants.
type granted struct {
	dir, config, traces string
	server              *mcptest.Server
	count               atomic.Int32
	hangs               atomic.Bool // at the call
}

func newGranted(t *testing.T, more string) *granted {
	t.Helper()
	g := new(granted)
	g.server = mcptest.New(t, func(method string) string {
		if method == "tools/call" {
			if g.count.Add(1); g.hangs.Load() {
				return ""
			}
		}
		return mcptest.Except("tools/list", mcptest.TwoTools)(method)
	})
	g.config, g.traces = mcptest.Config(t, g.server, "", more)
	g.dir = filepath.Dir(g.config)
	return g
}

// grant writes a grant for the tool and returns its path.
func (g *granted) grant(t *testing.T, name, what string) string {
	t.Helper()
	path := filepath.Join(g.dir, name)
	clitest.Write(t, path, fmt.Sprintf("version: 1\ntools: {puppet: {look: {%s}}}\n", what))
	return path
}

// call is a command line.
func (g *granted) call(args string, flags ...string) []string {
	return append(append([]string{"call", "--json", "-c", g.config}, flags...), "puppet", "look", args)
}

// TestFaultsGrantAmongProcesses: of eight processes that work on one task at once, as many call as are granted.
func TestFaultsGrantAmongProcesses(t *testing.T) {
	t.Parallel()
	const many, most = 8, 3
	g := newGranted(t, "")
	words := g.call("{}", "--grant", g.grant(t, "grant.yaml", fmt.Sprintf("calls: %d", most)), "--task", "one")
	var cmds []*exec.Cmd
	var outs, errs []fmt.Stringer
	for range many {
		cmd, stdout, stderr := child(t.Context(), "pgfsm", nil, words...)
		check.NoError(t, cmd.Start())
		cmds, outs, errs = append(cmds, cmd), append(outs, stdout), append(errs, stderr)
	}
	answered := 0
	for i, cmd := range cmds {
		r := clitest.Result{Code: clitest.ExitCode(t, cmd.Wait()), Stdout: outs[i].String(), Stderr: errs[i].String()}
		if r.Code == exitYes {
			answered++
			r.Want(t, exitYes, "/type", "tool_result", "/effect", "done")
			continue
		}
		r.Want(t, exitNo, "/type", "blocked", "/gate", "grant", "/code", "grant_exhausted", "/effect", "not_sent")
	}
	if got := g.count.Load(); got != most || answered != most {
		t.Errorf("%d calls reached the server and %d were answered, want %d", got, answered, most)
	}
	replays(t, g.traces, many)
}

// TestFaultsGrantSurvivesAKill: a call that was begun counts, whatever became of the process that made it.
func TestFaultsGrantSurvivesAKill(t *testing.T) {
	t.Parallel()
	g := newGranted(t, "")
	g.hangs.Store(true)
	words := g.call("{}", "--grant", g.grant(t, "grant.yaml", "calls: 2"), "--task", "one")
	cmd, _, _ := child(t.Context(), "pgfsm", nil, words...)
	check.NoError(t, cmd.Start())
	g.server.Await(t, "tools/call")
	kill(t, cmd)
	g.hangs.Store(false)
	second := command(t.Context(), nil, words...)
	second.Want(t, exitYes, "/type", "tool_result")
	if !strings.Contains(second.Stderr, "ended as failed indeterminate") {
		t.Errorf("stderr = %q, want the killed run to end as indeterminate", second.Stderr)
	}
	command(t.Context(), nil, words...).Want(t, exitNo, "/code", "grant_exhausted")
	if got := g.count.Load(); got != 2 {
		t.Errorf("calls that reached the server = %d, want 2", got)
	}
	replays(t, g.traces, 2) // the killed process wrote no trace, and its run is in the ledger
	command(t.Context(), nil, "ledger", "verify", "-c", g.config).Want(t, exitYes)
}
