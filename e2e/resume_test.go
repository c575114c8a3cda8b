package e2e

import (
	"fmt"
	"path/filepath"
	"pgfsm/internal/test/cli"
	"pgfsm/internal/test/tool"
	"strings"
	"testing"
)

// TestLedgerKilledWhileCalling: a call in flight when its process is killed is never made again and never called a success.
func TestLedgerKilledWhileCalling(t *testing.T) {
	t.Parallel()
	h := newHouse(t, openPolicy, "")
	kill(t, h.started("tools/call", "call", "puppet", "look", "{}"))
	h.hangs.Store("")
	r := h.do("call", "--json", "puppet", "no-such-tool", "{}")
	r.Want(t, exitNo)
	if !strings.HasPrefix(r.Stderr, "pgfsm: a left-over run ended as failed indeterminate: ") || strings.Count(r.Stderr, "\n") != 1 {
		t.Errorf("stderr = %q", r.Stderr)
	}
	h.do("ledger", "list", "--status", "indeterminate", "--json").Want(t, exitYes,
		"/requests/0/tool", "look", "/requests/0/code", "indeterminate", "/more", "false")
	h.made(1)
	h.do("ledger", "verify").Want(t, exitYes)
}

// TestLedgerKilledWhileResuming: an approval is lost neither before the call nor spent twice.
func TestLedgerKilledWhileResuming(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, hangs string
		code        int
		typ, effect string
	}{
		{"before-the-call", "tools/list", exitYes, "tool_result", "done"},
		{"during-the-call", "tools/call", exitCould, "failed", "unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, heldPolicy, "")
			id := h.decided("approve")
			first := h.started(tt.hangs, "resume", id)

			// As long as the first one lives, the run is its own.
			lost := h.do("resume", "--json", id)
			lost.Want(t, exitCould)
			if !strings.Contains(lost.Stderr, id+": another process has the run: owner ") {
				t.Errorf("stderr = %q, want it to say who has the run", lost.Stderr)
			}
			if r := h.do("resume", "--json"); r.Code != exitYes {
				t.Errorf("resume of all = %d, %s", r.Code, r.Stderr)
			}

			kill(t, first)
			h.hangs.Store("")
			h.do("resume", "--json", id).Want(t, tt.code, "/type", tt.typ, "/effect", tt.effect, "/run_id", id)
			h.do("resume", "--json", id).Want(t, tt.code, "/type", tt.typ, "/effect", tt.effect)
			h.made(1)
			h.do("ledger", "verify").Want(t, exitYes)
		})
	}
}

// TestLedgerWithoutRoom: where the ledger cannot be written, nothing is called; what was called is never said to be done
// unless that stands in it.
func TestLedgerWithoutRoom(t *testing.T) {
	t.Parallel()
	h := newHouse(t, openPolicy, "")
	answered := 0
	for room := 0; room <= 400<<10; room += 50 << 10 {
		t.Run(fmt.Sprintf("room-for-%d-bytes", room), func(t *testing.T) {
			dir := t.TempDir()
			text := strings.Replace(cli.Read(t, h.config), "sqlite:pgfsm.db", "sqlite:"+filepath.Join(dir, "runs.db"), 1)
			config := filepath.Join(filepath.Dir(h.config), fmt.Sprintf("room-%d.yaml", room))
			cli.Write(t, config, text)
			before := h.calls.Load()
			cmd, stdout, stderr := child(t.Context(), "cramped", []string{fmt.Sprintf("CRAMPED=%d", room)},
				"call", "--json", "-c", config, "puppet", "look", "{}")
			code := cli.ExitCode(t, cmd.Run())
			if code == errConfined {
				tool.Skip(t, stderr.String())
			}
			r := cli.Result{Code: code, Stdout: stdout.String(), Stderr: stderr.String()}
			switch called := h.calls.Load() - before; {
			case code == exitYes && called == 1:
				answered++
			case code == exitCould && called == 0:
				if said := r.Stdout + r.Stderr; !strings.Contains(said, "ledger") || r.Stdout != "" && r.Member("/effect") != "not_sent" {
					t.Errorf("stdout = %q, stderr = %q, want the cause, and that nothing was sent", r.Stdout, r.Stderr)
				}
			case code == exitCould && called == 1:
				r.Want(t, exitCould, "/code", "record_failed")
				if effect := r.Member("/effect"); effect == "not_sent" {
					t.Errorf("effect = %s of a call that was made", effect)
				}
			default:
				t.Errorf("exit code = %d with %d calls: %s %s", code, called, r.Stdout, r.Stderr)
			}
			// With room again, all of it is as it should be.
			command(t.Context(), nil, "call", "--json", "-c", config, "puppet", "no-such-tool", "{}").Want(t, exitNo)
			command(t.Context(), nil, "ledger", "verify", "-c", config).Want(t, exitYes)
		})
	}
	if answered == 0 {
		t.Error("there never was room enough: the test shows nothing")
	}
}
