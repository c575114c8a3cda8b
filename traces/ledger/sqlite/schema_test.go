package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger/sqlite/sqlitetest"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlrows"
)

// closed makes a ledger with an entry, and closes it.
func closed(t *testing.T) string {
	t.Helper()
	s := fresh(t)
	check.NoError(t, s.Update(context.Background(), addEntry(1)))
	check.NoError(t, s.Close())
	return s.path
}

// checkFile checks a whole file as `pgfsm ledger verify` does.
func checkFile(ctx context.Context, s *Store) error {
	return s.View(ctx, func(r ledger.Reader) error { return r.(*tx).Check(ctx) })
}

// TestAlteredSchema: whatever can make a write do something else than it says is found.
func TestAlteredSchema(t *testing.T) {
	const rewritten = "PRAGMA writable_schema = 1"
	for _, tc := range []struct {
		name       string
		statements []string
		key        string // of the fault; empty: there is none
	}{
		{"trigger-that-ignores-votes", []string{
			"CREATE TRIGGER z BEFORE INSERT ON entries WHEN NEW.type = 'approval.denied' BEGIN SELECT RAISE(IGNORE); END",
		}, "trigger z"},
		{"trigger-first-in-order", []string{"CREATE TRIGGER a AFTER INSERT ON entries BEGIN DELETE FROM runs; END"}, "trigger a"},
		{"last-trigger-missing", []string{"DROP TRIGGER entries_refuse_update"}, "trigger entries_refuse_update"},
		{"trigger-changed", []string{
			"DROP TRIGGER entries_refuse_update", "CREATE TRIGGER entries_refuse_update BEFORE UPDATE ON entries BEGIN SELECT 1; END",
		}, "trigger entries_refuse_update"},
		{"table-too-many", []string{"CREATE TABLE more (x)"}, "table more"},
		{"table-missing", []string{"DROP TABLE tokens"}, "table tokens"},
		{"table-made-a-view", []string{"ALTER TABLE delivered RENAME TO d", "CREATE VIEW delivered AS SELECT * FROM d"}, "table delivered"},
		{"view-too-many", []string{"CREATE VIEW v AS SELECT 1"}, "view v"},
		{"view-missing", []string{"DROP VIEW events"}, "view events"},
		{"view-changed", []string{"DROP VIEW events", "CREATE VIEW events AS SELECT * FROM entries"}, "view events"},
		{"column-too-many", []string{"ALTER TABLE entries ADD COLUMN more TEXT"}, "table entries"},
		{"column-with-another-name", []string{"ALTER TABLE tokens RENAME COLUMN role TO roles"}, "table tokens"},
		{"index-too-many", []string{"CREATE UNIQUE INDEX one ON entries (type)"}, "index one"},
		{"index-missing", []string{"DROP INDEX runs_open"}, "index runs_open"},
		{"index-changed", []string{"DROP INDEX runs_open", "CREATE INDEX runs_open ON runs (run) WHERE ended <> ''"}, "index runs_open"},
		{"statistics-of-another-form", []string{"ANALYZE", rewritten,
			"UPDATE sqlite_schema SET sql = 'CREATE TABLE sqlite_stat1(tbl,idx,stat, more)' WHERE name = 'sqlite_stat1'"}, "table sqlite_stat1"},
		{"view-cut-short", []string{"DROP VIEW decisions", `CREATE VIEW decisions AS SELECT idx, run_id, at, event ->> 'outcome' AS outcome, event ->> 'gate' AS gate, event ->> 'policy' AS policy,
    event ->> 'code' AS code, event ->> 'reason' AS reason
FROM events`}, "view decisions"},
		{"guard-left-open", []string{"INSERT INTO pruning (since) VALUES (1)"}, "a row"},
		{"statistics", []string{"ANALYZE"}, ""},
		{"made-smaller", []string{"VACUUM"}, ""},
		{"indexes-made-anew", []string{"REINDEX"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := closed(t)
			db := raw(t, path)
			run(t, db, tc.statements...)
			check.NoError(t, db.Close())
			for how, open := range map[string]func() (*Store, error){ // in any order
				"Open": func() (*Store, error) { return Open(path) }, "OpenReadOnly": func() (*Store, error) { return OpenReadOnly(path) },
			} {
				s, err := open()
				check.NoError(t, err)
				err = checkFile(t.Context(), s)
				s.Close()
				var fault *ledger.Fault
				if tc.key == "" && err != nil || tc.key != "" && (!errors.Is(err, ledger.ErrTampered) || !errors.As(err, &fault) || fault.Key != tc.key) {
					t.Errorf("%s: Check() = %v, want a fault of %q", how, err, tc.key)
				}
			}
		})
	}
}

// TestWhatIsNotRecordedFails: a trigger that was put there while the file is open makes statements do nothing.
func TestWhatIsNotRecordedFails(t *testing.T) {
	added := func(tx ledger.Tx) error { return tx.AddRun(runRow(ledger.Pending)) }
	for _, tc := range []struct {
		name, ignores string
		before        func(ledger.Tx) error // nil: nothing is there
		writes        func(ledger.Tx) error
	}{
		{"entry", "INSERT ON entries", nil, addEntry(1)},
		{"run", "INSERT ON runs", nil, added},
		{"run-that-is-there", "UPDATE ON runs", added, func(tx ledger.Tx) error { return tx.PutRun(runRow(ledger.Denied)) }},
		{"prune-of-an-entry", "UPDATE ON entries", addEntry(0), func(tx ledger.Tx) error {
			return tx.Prune([]ledger.PrunedEntry{{Index: 0, Header: []byte("{}")}}, nil, nil)
		}},
		{"blob", "INSERT ON blobs", nil, func(tx ledger.Tx) error { return tx.PutBlob(ledger.Blob{Digest: "d"}) }},
		{"token", "INSERT ON tokens", nil, func(tx ledger.Tx) error { return tx.PutToken(ledger.Token{ID: "k"}) }},
		{"delivery", "INSERT ON deliveries", nil, func(tx ledger.Tx) error {
			return tx.PutDelivery(ledger.Delivery{Entry: 1, Hook: "h", State: "waiting"})
		}},
		{"hook", "INSERT ON delivered", nil, func(tx ledger.Tx) error { return tx.SetNextDelivery("h", 1) }},
		{"prune", "INSERT ON pruning", nil, func(tx ledger.Tx) error { return tx.Prune(nil, nil, nil) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := fresh(t)
			if tc.before != nil {
				check.NoError(t, s.Update(context.Background(), tc.before))
			}
			db := raw(t, s.path)
			run(t, db, "CREATE TRIGGER z BEFORE "+tc.ignores+" BEGIN SELECT RAISE(IGNORE); END")
			err := s.Update(context.Background(), func(tx ledger.Tx) error {
				_ = tc.writes(tx) // Update must fail whatever is made of this
				return nil
			})
			refused(t, err, sqlrows.ErrUnrecorded, s.path, "ledger verify")
			run(t, db, "DROP TRIGGER z")
			if err := s.Update(context.Background(), tc.writes); err != nil {
				t.Errorf("without the trigger: %v", err)
			}
		})
	}
}

// TestCheckFindsDamagedIndexes: an index that does not have the rows of its table makes lists that lie.
func TestCheckFindsDamagedIndexes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s, err := Open(path)
	check.NoError(t, err)
	err = s.Update(context.Background(), func(tx ledger.Tx) error { return tx.AddRun(runRow(ledger.Pending)) })
	check.NoError(t, err)
	whole(t, s, nil)
	check.NoError(t, s.Close())
	sqlitetest.EmptyIndex(t, path, "runs_status")
	if s, err = OpenReadOnly(path); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	whole(t, s, ledger.ErrTampered)
	stopped, stop := context.WithCancel(context.Background())
	err = s.View(t.Context(), func(r ledger.Reader) error { stop(); return r.(*tx).Check(stopped) })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Check with nobody who waits = %v", err)
	}
}

func whole(t *testing.T, s *Store, want error) {
	t.Helper()
	err := checkFile(t.Context(), s)
	if !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "runs_status") {
		t.Errorf("Check = %v, want %v", err, want)
	}
}
