package e2e

import (
	"bufio"
	"errors"
	"os"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// A ballot that comes too late has the expiry recorded and the run ended.
func TestApprovalsExpired(t *testing.T) {
	t.Parallel()
	h := newHouse(t, strings.Replace(heldPolicy, "1h", "1s", 1), "")
	run, binding := h.held()
	expires := recorded(t, h.dir)[0].Expires
	soon(t, "it has expired", func() bool { return strings.Contains(h.byDora("approvals", "list").Stdout, ", expired "+expires) })
	r := h.byDora("approvals", "approve", run, "--digest", binding)
	r.Want(t, exitNo)
	if !strings.Contains(r.Stderr, "refused, approval_expired: ") || r.Stdout != "" {
		t.Errorf("approvals approve: %s%s", r.Stdout, r.Stderr)
	}
	if q := recorded(t, h.dir)[0]; q.Status != ledger.Expired || q.State != states.Blocked || q.Ended == "" {
		t.Errorf("the request is %s at %s, ended %q; want %s, %s", q.Status, q.State, q.Ended, ledger.Expired, states.Blocked)
	}
}

// watch prints what waits, and what happens afterwards, until it is interrupted.
func TestApprovalsWatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		flags []string
		says  func(typ ledger.Type, run string) string
	}{
		{"people", nil, func(typ ledger.Type, run string) string {
			return string(typ) + "  " + strings.Repeat(" ", 18-len(typ)) + run
		}},
		{"programs", []string{"--json"}, func(typ ledger.Type, _ string) string { return `"type":"` + string(typ) + `"` }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t, heldPolicy, "")
			first, binding := h.held()
			watch, _, stderr := child(t.Context(), "pgfsm", []string{tokenVariable + "=" + h.dora[tokenVariable]},
				append([]string{"approvals", "watch", "-c", h.config}, tt.flags...)...)
			watch.Stdout = nil
			printed, err := watch.StdoutPipe()
			check.NoError(t, errors.Join(err, watch.Start()))
			lines := bufio.NewScanner(printed)
			next := func(typ ledger.Type, run string) {
				t.Helper()
				if !lines.Scan() || !strings.Contains(lines.Text(), tt.says(typ, run)) || !strings.Contains(lines.Text(), run) {
					t.Fatalf("watch prints %q, want %s of %s", lines.Text(), typ, run)
				}
			}
			next(ledger.ApprovalRequested, first)
			second, _ := h.held()
			next(ledger.ApprovalRequested, second)
			h.byDora("approvals", "approve", first, "--digest", binding).Want(t, exitYes)
			next(ledger.ApprovalApproved, first)
			check.NoError(t, watch.Process.Signal(os.Interrupt))
			if lines.Scan() {
				t.Errorf("watch goes on: %q", lines.Text())
			}
			if code := clitest.ExitCode(t, watch.Wait()); code != exitYes || stderr.Len() > 0 {
				t.Errorf("exit code %d, %s", code, stderr)
			}
		})
	}
}
