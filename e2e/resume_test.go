package e2e

import (
	"strings"
	"testing"
)

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
