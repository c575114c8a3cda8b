package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// waiting is a configuration with a ledger, whose server counts calls and can be made to hang.
type waiting struct {
	config, ledger string
	server         *puppet
	hangs          atomic.Value // the method at which the server hangs; a string
	calls          atomic.Int32
}

// newWaiting writes the configuration. Its policy holds every call for dora, unless it is to allow it.
func newWaiting(t *testing.T, effect string) *waiting {
	t.Helper()
	w := &waiting{}
	w.hangs.Store("")
	w.server = newPuppet(t, func(method string) string {
		if method == "tools/call" {
			w.calls.Add(1)
		}
		if method == w.hangs.Load() {
			return ""
		}
		return honest(method)
	})
	w.config, _ = puppetConfig(t, w.server, "", "policy: policy.yaml\nroles: {owners: [dora]}\nledger: sqlite:runs.db\n")
	dir := filepath.Dir(w.config)
	w.ledger = filepath.Join(dir, "runs.db")
	policy := "version: 1\npolicies: [{id: all, effect: allow, reason: Fine.}]\n"
	if effect == "pending" {
		policy = "version: 1\npolicies: [{id: waits, effect: pending, approvers: [owners], reason: Owners look.}]\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *waiting) do(t *testing.T, args ...string) ran {
	t.Helper()
	return command(t.Context(), nil, append(args, "-c", w.config)...)
}

// approved holds a call, has dora agree to it, and returns the run's id.
func (w *waiting) approved(t *testing.T) string {
	t.Helper()
	r := w.do(t, "call", "--json", "puppet", "look", "{}")
	r.want(t, exitPending, "/type", "pending")
	id := r.member("/run_id")
	made := w.do(t, "token", "create", "--role", "approver", "--name", "dora", "--json")
	made.want(t, exitYes)
	env := map[string]string{tokenVariable: made.member("/secret")}
	command(t.Context(), env, "approvals", "approve", id, "--digest", r.member("/approval/binding"), "-c", w.config).want(t, exitYes)
	return id
}

// started begins a process that hangs at a method.
func (w *waiting) started(t *testing.T, method string, args ...string) *exec.Cmd {
	t.Helper()
	w.hangs.Store(method)
	for drained := false; !drained; { // what came before is not what is waited for
		select {
		case <-w.server.came:
		default:
			drained = true
		}
	}
	cmd, _, _ := child(t.Context(), "pgfsm", nil, append(args, "-c", w.config)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.server.await(t, method)
	return cmd
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // killed, as was to be
}

// TestLedgerKilledWhileCalling: a call in flight when its process is killed is never made again and never called a success.
func TestLedgerKilledWhileCalling(t *testing.T) {
	t.Parallel()
	w := newWaiting(t, "allow")
	kill(t, w.started(t, "tools/call", "call", "puppet", "look", "{}"))
	w.hangs.Store("")
	r := w.do(t, "call", "--json", "puppet", "no-such-tool", "{}")
	r.want(t, exitNo)
	if !strings.HasPrefix(r.stderr, "pgfsm: a left-over run ended as failed indeterminate: ") || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("stderr = %q", r.stderr)
	}
	if got := w.calls.Load(); got != 1 {
		t.Errorf("calls that reached the server = %d, want 1", got)
	}
	w.do(t, "ledger", "verify").want(t, exitYes)
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
			w := newWaiting(t, "pending")
			id := w.approved(t)
			first := w.started(t, tt.hangs, "resume", id)

			// As long as the first one lives, the run is its own.
			lost := w.do(t, "resume", "--json", id)
			lost.want(t, exitCould)
			if !strings.Contains(lost.stderr, id+": another process has the run: owner ") {
				t.Errorf("stderr = %q, want it to say who has the run", lost.stderr)
			}
			if r := w.do(t, "resume", "--json"); r.code != exitYes {
				t.Errorf("resume of all = %d, %s", r.code, r.stderr)
			}

			kill(t, first)
			w.hangs.Store("")
			w.do(t, "resume", "--json", id).want(t, tt.code, "/type", tt.typ, "/effect", tt.effect, "/run_id", id)
			w.do(t, "resume", "--json", id).want(t, tt.code, "/type", tt.typ, "/effect", tt.effect)
			if got := w.calls.Load(); got != 1 {
				t.Errorf("calls that reached the server = %d, want 1", got)
			}
			w.do(t, "ledger", "verify").want(t, exitYes)
		})
	}
}

// TestLedgerWithoutRoom: where the ledger cannot be written, nothing is called; what was called is never said to be done
// unless that stands in it.
func TestLedgerWithoutRoom(t *testing.T) {
	t.Parallel()
	w := newWaiting(t, "allow")
	answered := 0
	for room := 0; room <= 400<<10; room += 20 << 10 {
		t.Run(fmt.Sprintf("room-for-%d-bytes", room), func(t *testing.T) {
			dir := t.TempDir()
			text := strings.Replace(textOf(t, w.config), "sqlite:runs.db", "sqlite:"+filepath.Join(dir, "runs.db"), 1)
			config := filepath.Join(filepath.Dir(w.config), fmt.Sprintf("room-%d.yaml", room))
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			before := w.calls.Load()
			cmd, stdout, stderr := child(t.Context(), "cramped", []string{fmt.Sprintf("CRAMPED=%d", room)},
				"call", "--json", "-c", config, "puppet", "look", "{}")
			code := exitCodeOf(t, cmd.Run())
			if code == errConfined {
				skip(t, stderr.String())
			}
			r := ran{code, stdout.String(), stderr.String()}
			switch called := w.calls.Load() - before; {
			case code == exitYes && called == 1:
				answered++
			case code == exitCould && called == 0:
				if said := r.stdout + r.stderr; !strings.Contains(said, "ledger") || r.stdout != "" && r.member("/effect") != "not_sent" {
					t.Errorf("stdout = %q, stderr = %q, want the cause, and that nothing was sent", r.stdout, r.stderr)
				}
			case code == exitCould && called == 1:
				r.want(t, exitCould, "/code", "record_failed")
				if effect := r.member("/effect"); effect == "not_sent" {
					t.Errorf("effect = %s of a call that was made", effect)
				}
			default:
				t.Errorf("exit code = %d with %d calls: %s %s", code, called, r.stdout, r.stderr)
			}
			// With room again, all of it is as it should be.
			command(t.Context(), nil, "call", "--json", "-c", config, "puppet", "no-such-tool", "{}").want(t, exitNo)
			command(t.Context(), nil, "ledger", "verify", "-c", config).want(t, exitYes)
		})
	}
	if answered == 0 {
		t.Error("there never was room enough: the test shows nothing")
	}
}

// TestLedgerThatIsNone: a ledger that cannot be opened stops everything before it begins.
func TestLedgerThatIsNone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		make func(path string) error
		says string
	}{
		{"not-a-database", func(path string) error {
			return os.WriteFile(path, []byte(strings.Repeat("not a database ", 100)), 0o600)
		}, "not a ledger"},
		{"a-folder", func(path string) error { return os.Mkdir(path, 0o700) }, "regular file"},
		{"others-may-write", func(path string) error {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				return err
			}
			return os.Chmod(path, 0o622)
		}, "chmod"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWaiting(t, "allow")
			if err := tt.make(w.ledger); err != nil {
				t.Fatal(err)
			}
			r := w.do(t, "call", "--json", "puppet", "look", "{}")
			r.want(t, exitCould)
			if r.stdout != "" || !strings.Contains(r.stderr, tt.says) || w.calls.Load() != 0 {
				t.Errorf("stdout = %q, stderr = %q, %d calls; want %q on stderr and none", r.stdout, r.stderr, w.calls.Load(), tt.says)
			}
		})
	}
}
