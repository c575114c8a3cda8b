package e2e

import (
	"strings"
	"testing"

	"pgfsm/traces/ledger"
)

// holdLookToo holds what holdLook holds, in the same way, and allows another tool.
const holdLookToo = holdLook + `  - {id: write, match: {tool: write}, effect: allow, reason: "Anybody may write."}
`

// TestReloadHeld: a reload does not decide about held calls. When one is approved, the bundle that is active then judges it again.
func TestReloadHeld(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, next string
		votes      string // approve or deny
		status     ledger.Status
		code       string
		called     int32
	}{
		{"same-judgement", holdLookToo, "approve", ledger.Executed, "", 1},
		{"same-judgement-and-denied", holdLookToo, "deny", ledger.Denied, "approval_denied", 0},
		{"now-denied", denyLook, "approve", ledger.Denied, "policy_denied", 0},
		{"now-allowed", openLook, "approve", ledger.Executed, "", 1},
		{"by-another-policy", strings.Replace(holdLook, "id: people", "id: others", 1), "approve", ledger.Denied, "bundle_changed", 0},
		{"with-a-larger-quorum", strings.Replace(holdLook, "expires:", "quorum: 2, expires:", 1), "approve", ledger.Denied, "bundle_changed", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := newOfficeOn(t, newLedger(t), holdLook, "")
			admin := makeToken(t, o.config, "admin", "root")
			a := o.agent("/mcp", o.ci)
			run := o.held(t, a, `{"n":1}`)
			before := recorded(t, o.dir)[0].Bundle
			o.replaces(t, "policy.yaml", tt.next)
			got := o.reloads(t, admin, exitYes)
			if q := recorded(t, o.dir)[0]; q.Status != ledger.Pending || q.Bundle != before {
				t.Errorf("after the reload the call is %+v", q)
			}
			if again := a.call("echo__look", `{"n":1}`); again.code() != "approval_required" || again.Result.Meta.Decision.RunID != run {
				t.Errorf("the repeated call is %s: a call that would now be allowed still needs its votes", again.Raw)
			}
			o.decide(t, tt.votes, run, o.bob)
			o.ended(t, run, tt.status, tt.code)
			o.u.Reached(t, tt.called)
			if tt.called > 0 && !recordHas(t, o.dir, run, got.Member("/bundle")) {
				t.Error("the new bundle is no input of the record")
			}
			verifies(t, o.dir)
		})
	}
}

// recordHas reports whether the entries of a run name a bundle.
func recordHas(t *testing.T, dir, run, bundle string) (has bool) {
	t.Helper()
	for _, e := range events(t, dir, "") {
		has = has || e.RunID == run && strings.Contains(string(e.Payload), bundle)
	}
	return has
}
