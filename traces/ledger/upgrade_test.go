package ledger_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlite"
)

// TestALedgerOfBeforeOutcomesWereDelivered: a file as version 5 left it is brought up to date with all that it tells of, which
// verifies as before, and goes on.
func TestALedgerOfBeforeOutcomesWereDelivered(t *testing.T) {
	path := onDisk(t, func(d *desk) {
		d.passes(2)
		d.hold(agents("local:ann"))
		d.called("local:ann")
	})
	b := newBench(t, path)
	for _, text := range []string{
		"DROP INDEX requests_waiting", "DROP INDEX events_pruned", "ALTER TABLE requests DROP COLUMN delivered",
		"CREATE INDEX requests_bundle ON requests (bundle)", "CREATE INDEX decisions_bundle ON decisions (bundle)",
		"DELETE FROM goose_db_version WHERE version_id = 6",
	} {
		b.exec(t, text)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(b.path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := councilIn(t, store)
	rows := func() (all []ledger.Request) {
		c.view(func(r ledger.Reader) error {
			for q, err := range r.Requests(ledger.Filter{}) {
				if err != nil {
					return err
				}
				all = append(all, q)
			}
			return nil
		})
		return all
	}
	var was []ledger.Request
	look(t, path, func(r ledger.Reader) error {
		for q, err := range r.Requests(ledger.Filter{}) {
			if err != nil {
				return err
			}
			was = append(was, q)
		}
		return nil
	})
	is := rows()
	if diff := cmp.Diff(was, is); diff != "" || len(is) != 4 {
		t.Errorf("the requests (-were +are):\n%s", diff)
	}
	verified := func() {
		t.Helper()
		c.view(func(r ledger.Reader) error {
			_, err := ledger.Verify(context.Background(), r, ledger.VerifyOptions{Replayer: traces.NewReplayer(statestest.MustMachine(t), nil)})
			return err
		})
	}
	verified()
	c.clock.toNow()
	q, err := c.Attach(context.Background(), ledger.Look{Actor: "local:ann", Server: is[2].Server, Tool: is[2].Tool, Arguments: is[2].Arguments})
	if err != nil || q.RunID != is[2].RunID {
		t.Errorf("Attach() = %+v, %v, want what was held before", q, err)
	}
	if first, err := c.Deliver(context.Background(), is[3].RunID, ledger.ByRepeat); err != nil || !first {
		t.Errorf("Deliver() = %t, %v", first, err)
	}
	verified()
}
