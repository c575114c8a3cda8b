package present_test

import (
	"testing"

	"pgfsm/internal/present"
	"pgfsm/traces/ledger"
)

// TestRefusals: a summary lists the codes of runs that were refused or failed, and of no others.
func TestRefusals(t *testing.T) {
	for status, want := range map[ledger.Status]bool{ // in any order
		ledger.Proposed: false, ledger.Pending: false, ledger.Approved: false, ledger.Allowed: false, ledger.Executed: false,
		ledger.Denied: true, ledger.Failed: true, ledger.Expired: true, ledger.Indeterminate: true,
	} {
		s := present.NewSummary(&ledger.Activity{Counts: []ledger.Count{{At: "2027-01-31T12", Status: status, Code: "code", Runs: 1}}})
		if got := len(s.Refusals) == 1; got != want {
			t.Errorf("%s: refusals %+v", status, s.Refusals)
		}
	}
}
