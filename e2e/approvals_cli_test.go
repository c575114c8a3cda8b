package e2e

import (
	"strings"
	"testing"

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
