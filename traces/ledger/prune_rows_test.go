package ledger_test

import (
	"testing"

	"pgfsm/traces/ledger"
)

// TestPruneInAFile: events and steps of one commit stand in one row of a file, and no prune parts a row: the end of a run, and the
// delivery of its outcome, are the last of theirs.
func TestPruneInAFile(t *testing.T) {
	var done []ledger.Pruned
	path := onDisk(t, func(d *desk) {
		d.passes(3)
		d.passing()
		held, s := d.approved(nil)
		if _, err := d.resume(held, world(s)); err != nil {
			t.Fatal(err)
		}
		d.delivers(held, ledger.ByTask)
		d.Clock.Set(t, "2026-11-21T09:35:00Z")
		d.passes(2)
		d.Clock.Set(t, "2026-11-21T09:40:00Z")
		d.passes(2)
		for _, before := range []string{"2026-11-21T09:35:00Z", "2026-11-21T09:40:00Z"} {
			done = append(done, d.prunes(before))
		}
		d.passes(1)
	})
	if done[0].Runs != 4 || done[1].Runs != 2 || done[0].Kept+done[1].Kept != 0 {
		t.Errorf("%+v, want 4 and 2 runs and no events of theirs that stay", done)
	}
	if report, err := verify(t, path, ledger.VerifyOptions{}); err != nil || report.Requests != 3 {
		t.Errorf("Verify() = %+v, %v", report, err)
	}
	for _, file := range []string{path, archive(t)} {
		b := newBench(t, file)
		for _, table := range []string{"events", "steps"} {
			if n := b.texts(t, "SELECT count(*) FROM "+table+" WHERE earlier > 0")[0]; n == "0" {
				t.Errorf("no row of %s holds several", table)
			}
		}
		for _, e := range b.texts(t, "SELECT value FROM events, json_each(before) WHERE earlier > 0 AND value ->> 'type' IN (?, ?)",
			ledger.RunEnded, ledger.OutcomeDelivered) {
			t.Errorf("%s is not the last of its row", e)
		}
	}
}
