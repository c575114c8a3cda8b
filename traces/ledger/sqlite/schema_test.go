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

func tampered(t *testing.T, how string, err error, table, key string) {
	t.Helper()
	var fault *ledger.Fault
	if !errors.Is(err, ledger.ErrTampered) || !errors.As(err, &fault) || fault.Table != table || fault.Key != key {
		t.Errorf("%s: %v, want a fault of %s %s", how, err, table, key)
	}
}

// TestAlteredSchema: whatever can make a write do something else than it says.
func TestAlteredSchema(t *testing.T) {
	const rewritten = "PRAGMA writable_schema = 1"
	for _, tc := range []struct {
		name       string
		statements []string
		key        string // empty: it is opened
	}{
		{"trigger-that-ignores-votes", []string{
			"CREATE TRIGGER z BEFORE INSERT ON entries WHEN NEW.type = 'approval.denied' BEGIN SELECT RAISE(IGNORE); END",
		}, "trigger z"},
		{"trigger-first-in-order", []string{"CREATE TRIGGER a AFTER INSERT ON entries BEGIN DELETE FROM requests; END"}, "trigger a"},
		{"last-trigger-missing", []string{"DROP TRIGGER entries_refuse_update"}, "trigger entries_refuse_update"},
		{"trigger-changed", []string{
			"DROP TRIGGER entries_refuse_update", "CREATE TRIGGER entries_refuse_update BEFORE UPDATE ON entries BEGIN SELECT 1; END",
		}, "trigger entries_refuse_update"},
		{"table-too-many", []string{"CREATE TABLE more (x)"}, "table more"},
		{"table-missing", []string{"DROP TABLE tokens"}, "index sqlite_autoindex_tokens_1"},
		{"table-made-a-view", []string{"ALTER TABLE delivered RENAME TO d", "CREATE VIEW delivered AS SELECT * FROM d"}, "index sqlite_autoindex_d_1"},
		{"view-too-many", []string{"CREATE VIEW v AS SELECT 1"}, "view v"},
		{"view-missing", []string{"DROP VIEW events"}, "view events"},
		{"view-changed", []string{"DROP VIEW events", "CREATE VIEW events AS SELECT * FROM entries"}, "view events"},
		{"column-too-many", []string{"ALTER TABLE entries ADD COLUMN more TEXT"}, "table entries"},
		{"column-with-another-name", []string{"ALTER TABLE requests RENAME COLUMN mode TO moods"}, "table requests"},
		{"index-too-many", []string{"CREATE UNIQUE INDEX one ON entries (type)"}, "index one"},
		{"index-missing", []string{"DROP INDEX requests_open"}, "index requests_open"},
		{"index-changed", []string{"DROP INDEX requests_open", "CREATE INDEX requests_open ON requests (run_id) WHERE ended <> ''"}, "index requests_open"},
		{"statistics-of-another-form", []string{"ANALYZE", rewritten,
			"UPDATE sqlite_schema SET sql = 'CREATE TABLE sqlite_stat1(tbl,idx,stat, more)' WHERE name = 'sqlite_stat1'"}, "table sqlite_stat1"},
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
				"Open": func() (*Store, error) { return Open(path, Options{}) }, "OpenReadOnly": func() (*Store, error) { return OpenReadOnly(path) },
			} {
				s, err := open()
				if err == nil {
					s.Close()
				}
				if tc.key == "" {
					if err != nil {
						t.Errorf("%s: %v", how, err)
					}
					continue
				}
				tampered(t, how, err, "sqlite_schema", tc.key)
			}
		})
	}
}

func TestOpenGuardIsTampering(t *testing.T) {
	path := closed(t)
	run(t, raw(t, path), "INSERT INTO pruning (since) VALUES (1)")
	_, err := Open(path, Options{})
	tampered(t, "Open", err, "pruning", "a row")
	_, err = OpenReadOnly(path)
	tampered(t, "OpenReadOnly", err, "pruning", "a row")
}

// TestWhatIsNotRecordedFails: a trigger that was put there while the file is open makes statements do nothing.
func TestWhatIsNotRecordedFails(t *testing.T) {
	request := func(status ledger.Status) func(ledger.Tx) error {
		return func(tx ledger.Tx) error { return tx.PutRun(ledger.RunRow{RunID: "a", Status: status}) }
	}
	for _, tc := range []struct {
		name, ignores string
		before        func(ledger.Tx) error // nil: nothing is there
		writes        func(ledger.Tx) error
	}{
		{"entry", "INSERT ON entries", nil, addEntry(1)},
		{"request", "INSERT ON requests", nil, request(ledger.Pending)},
		{"request-that-is-new", "INSERT ON requests", nil, func(tx ledger.Tx) error { return tx.AddRun(ledger.RunRow{RunID: "a"}) }},
		{"request-that-is-there", "UPDATE ON requests", request(ledger.Pending), request(ledger.Denied)},
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
	s, err := Open(path, Options{})
	check.NoError(t, err)
	err = s.Update(context.Background(), func(tx ledger.Tx) error { return tx.PutRun(ledger.RunRow{RunID: "a", Status: ledger.Pending}) })
	check.NoError(t, err)
	whole(t, s, nil)
	check.NoError(t, s.Close())
	sqlitetest.EmptyIndex(t, path, "requests_status")
	if s, err = OpenReadOnly(path); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	whole(t, s, ledger.ErrTampered)
	stopped, stop := context.WithCancel(context.Background())
	err = s.View(stopped, func(r ledger.Reader) error { stop(); return r.(*tx).Check(stopped) })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Check with nobody who waits = %v", err)
	}
}

func whole(t *testing.T, s *Store, want error) {
	t.Helper()
	err := s.View(context.Background(), func(r ledger.Reader) error { return r.(*tx).Check(context.Background()) })
	if !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "requests_status") {
		t.Errorf("Check = %v, want %v", err, want)
	}
}
