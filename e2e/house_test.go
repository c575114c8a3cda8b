package e2e

import (
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
)

// Policies of a house: an owner decides about every call, or none waits.
const (
	heldPolicy = `version: 1
policies: [{id: waits, match: {tool: "*"}, effect: pending, approvers: [owners], expires: 1h, reason: Owners look at it.}]
`
	openPolicy = "version: 1\npolicies: [{id: all, effect: allow, reason: Fine.}]\n"
)

// A house is a configuration with a ledger and a policy, a server that counts calls and can be made to hang, and dora, an owner.
type house struct {
	t      *testing.T
	server *mcptest.Server
	hangs  atomic.Value // the method at which the server hangs; a string
	calls  atomic.Int32
	dir    string
	config string
	ledger string            // for --ledger
	dora   map[string]string // the environment with her token
}

func newHouse(t *testing.T, policy, more string) *house {
	t.Helper()
	h := &house{t: t}
	h.hangs.Store("")
	h.server = mcptest.New(t, func(method string) string {
		if method == "tools/call" {
			h.calls.Add(1)
		}
		if method == h.hangs.Load() {
			return ""
		}
		return mcptest.Honest(method)
	})
	h.config, _ = mcptest.Config(t, h.server, "", "policy: policy.yaml\nroles: {owners: [dora]}\nledger: sqlite:pgfsm.db\n"+more)
	h.dir = filepath.Dir(h.config)
	h.ledger = "sqlite:" + filepath.Join(h.dir, "pgfsm.db")
	clitest.Write(t, filepath.Join(h.dir, "policy.yaml"), policy)
	made := h.do("token", "create", "--role", "approver", "--name", "dora", "--json") // the ledger is made as the configuration says
	made.Want(t, exitYes)
	h.dora = map[string]string{tokenVariable: made.Member("/secret")}
	return h
}

func (h *house) do(args ...string) clitest.Result {
	h.t.Helper()
	return command(h.t.Context(), nil, append(args, "-c", h.config)...)
}

// byDora runs the command as dora does.
func (h *house) byDora(args ...string) clitest.Result {
	h.t.Helper()
	return command(h.t.Context(), h.dora, append(args, "-c", h.config)...)
}

// held asks for a call, which waits then.
func (h *house) held() (run, binding string) {
	h.t.Helper()
	r := h.do("call", "--json", "puppet", "look", "{}")
	r.Want(h.t, exitPending, "/type", "pending")
	return r.Member("/run_id"), r.Member("/approval/binding")
}

// decided has dora approve or deny a call that waits.
func (h *house) decided(verb string) (run string) {
	h.t.Helper()
	run, binding := h.held()
	h.byDora("approvals", verb, run, "--digest", binding, "--reason", "as decided").Want(h.t, exitYes)
	return run
}

// started begins a process that hangs at a method.
func (h *house) started(method string, args ...string) *exec.Cmd {
	h.t.Helper()
	h.hangs.Store(method)
	for drained := false; !drained; { // what came before is not what is waited for
		select {
		case <-h.server.Came:
		default:
			drained = true
		}
	}
	cmd, _, _ := child(h.t.Context(), "pgfsm", nil, append(args, "-c", h.config)...)
	check.NoError(h.t, cmd.Start())
	h.server.Await(h.t, method)
	return cmd
}

// made holds the calls that reached the server to a number.
func (h *house) made(want int32) {
	h.t.Helper()
	if got := h.calls.Load(); got != want {
		h.t.Errorf("calls that reached the server = %d, want %d", got, want)
	}
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	check.NoError(t, cmd.Process.Kill())
	cmd.Wait() // killed, as was to be
}
