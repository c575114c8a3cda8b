package ledger_test

import (
	"errors"
	"testing"

	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// TestVerifyNamesWhatChangedWhileRunning changes rows under a ledger that is open and goes on recording.
func TestVerifyNamesWhatChangedWhileRunning(t *testing.T) {
	path := archive(t)
	for _, c := range []struct{ name, table, change string }{
		{"entry-changed", "entries", "UPDATE entries SET events = replace(events, 'policy-002', 'policy-003') WHERE idx = (SELECT min(idx) FROM entries WHERE events LIKE '%policy-002%')"},
		{"entry-dropped", "entries", "DELETE FROM entries WHERE idx = 20"},
		{"last-entry-of-a-run-dropped", "requests", "DELETE FROM entries WHERE idx = (SELECT max(idx) FROM entries)"},
		{"entries-swapped", "entries", "UPDATE entries SET idx = 999999 WHERE idx = 20; UPDATE entries SET idx = 20 WHERE idx = 21; UPDATE entries SET idx = 21 WHERE idx = 999999"},
		{"hash-changed", "entries", "UPDATE entries SET hashes = zeroblob(length(hashes)) WHERE idx = 20"},
		{"request-changed", "requests", "UPDATE requests SET actor = 'mallory' WHERE run_id = (SELECT min(run_id) FROM requests)"},
		{"request-dropped", "requests", "DELETE FROM requests WHERE run_id = (SELECT min(run_id) FROM requests)"},
		{"blob-changed", "blobs", "UPDATE blobs SET text = text || ' ' WHERE digest = (SELECT min(digest) FROM blobs)"},
		{"token-changed", "tokens", "UPDATE tokens SET role = 'admin' WHERE id = (SELECT min(id) FROM tokens)"},
		{"token-added", "tokens", "INSERT INTO tokens SELECT 'zzzz', name, 'admin', secret, created, '', '', entry FROM tokens LIMIT 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := openRaw(t, path)
			clock := ledgertest.NewClock(t)
			clock.Set(t, "2026-12-31T00:00:00Z")
			d, _ := fixtureInFile(t, b.path, clock)
			b.do(t, c.change)
			s := statestest.Find(t, "policy-allows")
			if _, _, err := d.play(ledgertest.NewID(t), &s); err != nil {
				t.Logf("after the change nothing is recorded: %v", err)
			}
			_, err := verify(t, b.path, ledger.VerifyOptions{})
			var fault *ledger.Fault
			if !errors.As(err, &fault) || fault.Table != c.table {
				t.Errorf("Verify() = %v, want a fault of %s", err, c.table)
			}
		})
	}
}
