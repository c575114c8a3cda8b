package ledger_test

import (
	"context"
	"fmt"
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
	b.toVersion6(t)
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

// toVersion6 makes the file what it was when every event and every step had a row of its own.
func (b *bench) toVersion6(t *testing.T) {
	t.Helper()
	const before = ", json_extract(before, '$[' || (key - 1) || '].hash')"
	b.do(t, `CREATE TEMP TABLE more AS SELECT events.seq - earlier + key AS seq, run_id, value ->> 'type' AS type, value ->> 'at' AS at,
		value ->> 'by' AS by, value -> 'payload' AS payload, coalesce(value ->> 'prev'`+before+`) AS prev, coalesce(value ->> 'run_prev'`+before+`)
		AS run_prev, value ->> 'hash' AS hash FROM events, json_each(before) WHERE earlier > 0`)
	b.do(t, "INSERT INTO events ("+eventColumns+") SELECT * FROM more")
	b.do(t, `DROP TABLE more; CREATE TEMP TABLE more AS SELECT run_id, seq - earlier + key AS seq, value ->> 'at' AS at, value ->> 'from_state' AS from_state,
		value ->> 'trigger' AS "trigger", value ->> 'to_state' AS to_state, value -> 'facts' AS facts, value -> 'command' AS command,
		value -> 'event' AS event, coalesce(value ->> 'prev'`+before+`) AS prev, value ->> 'hash' AS hash FROM steps, json_each(before) WHERE earlier > 0`)
	b.do(t, "INSERT INTO steps ("+stepColumns+") SELECT * FROM more")
	for _, text := range []string{
		"DROP TABLE more", "DROP INDEX events_tokens", "DROP TRIGGER events_refuse_insert", "DROP TRIGGER steps_refuse_insert",
		"ALTER TABLE events DROP COLUMN before", "ALTER TABLE events DROP COLUMN earlier", "ALTER TABLE steps DROP COLUMN before",
		"ALTER TABLE steps DROP COLUMN earlier", "DELETE FROM goose_db_version WHERE version_id >= 7",
		`CREATE TRIGGER events_refuse_insert BEFORE INSERT ON events WHEN NEW.seq <= (SELECT max(seq) FROM events)
			BEGIN SELECT RAISE(ABORT, 'events are append-only'); END`,
		`CREATE TRIGGER steps_refuse_insert BEFORE INSERT ON steps WHEN NEW.seq <= (SELECT max(seq) FROM steps WHERE run_id = NEW.run_id)
			BEGIN SELECT RAISE(ABORT, 'steps are append-only'); END`,
	} {
		b.exec(t, text)
	}
}

// recordIn are the events and the steps of a ledger, in order.
func recordIn(t *testing.T, path string) (events []ledger.Event, steps []ledger.Step) {
	t.Helper()
	look(t, path, func(r ledger.Reader) error {
		for e, err := range r.Events(0) {
			if err != nil {
				return err
			}
			events = append(events, e)
		}
		for run, err := range r.Runs() {
			if err != nil {
				return err
			}
			for s, err := range r.Steps(run) {
				if err != nil {
					return err
				}
				steps = append(steps, s)
			}
		}
		return nil
	})
	return events, steps
}

// TestALedgerOfOneRowEach: a file as version 6 left it tells the same, and goes on.
func TestALedgerOfOneRowEach(t *testing.T) {
	path := archive(t)
	b := newBench(t, path)
	rows := func() string {
		return b.texts(t, "SELECT (SELECT count(*) FROM events) || ' and ' || (SELECT count(*) FROM steps)")[0]
	}
	together := rows()
	b.toVersion6(t)
	alone := rows()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(b.path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	events, steps := recordIn(t, path)
	sameEvents, sameSteps := recordIn(t, b.path)
	if diff := cmp.Diff(events, sameEvents); diff != "" {
		t.Errorf("the events (-was +is):\n%s", diff)
	}
	if diff := cmp.Diff(steps, sameSteps); diff != "" {
		t.Errorf("the steps (-was +is):\n%s", diff)
	}
	if want := fmt.Sprintf("%d and %d", len(events), len(steps)); alone != want || together == want {
		t.Errorf("%s rows, and %s when each has its own, want %s", together, alone, want)
	}
	c := councilIn(t, store)
	c.clock.toNow()
	c.holdsBy(carol, councilContent(1))
	later, more := recordIn(t, b.path)
	if len(later) <= len(events) || len(more) <= len(steps) {
		t.Errorf("%d events and %d steps, want more than %d and %d", len(later), len(more), len(events), len(steps))
	}
	if _, err := verify(t, b.path, ledger.VerifyOptions{Replayer: traces.NewReplayer(statestest.MustMachine(t), nil)}); err != nil {
		t.Errorf("Verify() = %v", err)
	}
}
