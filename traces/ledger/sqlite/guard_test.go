package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlrows"
)

// TestAppendOnlyByTrigger: whatever program opens the file.
func TestAppendOnlyByTrigger(t *testing.T) {
	s := fresh(t)
	for i := range int64(2) {
		check.NoError(t, s.Update(context.Background(), addEntry(i)))
	}
	db := raw(t, s.path)
	for _, statement := range []string{
		"UPDATE entries SET at = 'x'", "UPDATE entries SET at = at WHERE idx = 0", "UPDATE entries SET idx = idx + 10", "DELETE FROM entries",
		"UPDATE entries SET hashes = zeroblob(32)", "UPDATE entries SET events = ''", "DELETE FROM entries WHERE idx = 0",
		"INSERT OR REPLACE INTO entries SELECT * FROM entries WHERE idx = 0", "REPLACE INTO entries SELECT * FROM entries",
		"INSERT OR IGNORE INTO entries SELECT * FROM entries", "UPDATE OR REPLACE entries SET idx = 0",
		"INSERT INTO entries SELECT * FROM entries WHERE true ON CONFLICT DO UPDATE SET at = 'x'",
	} {
		appendOnly(t, db, statement)
	}
	if rows := dump(t, db, "pruning"); rows != "" {
		t.Errorf("pruning has %s", rows)
	}
}

// appendOnly shows that the file refuses a statement.
func appendOnly(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	before := dump(t, db, "entries") + dump(t, db, "hashes")
	if _, err := db.Exec(statement); err == nil || !strings.Contains(err.Error(), "entries are append-only") {
		t.Errorf("%s: %v, want it to be refused", statement, err)
	}
	if after := dump(t, db, "entries") + dump(t, db, "hashes"); after != before {
		t.Errorf("%s: changed %s to %s", statement, before, after)
	}
}

// dump returns all of a table, or the hashes of entries.
func dump(t *testing.T, db *sql.DB, table string) (text string) {
	t.Helper()
	columns := map[string]string{
		"entries": "idx, '|', run_id, '|', n, '|', at, '|', by, '|', prev, '|', type, '|', events", "hashes": "idx, '|', hex(hashes)", "pruning": "since", "events": "idx, '|', run_id, '|', type, '|', event",
	}[table]
	table = strings.Replace(table, "hashes", "entries", 1)
	check.NoError(t, db.QueryRow("SELECT coalesce(group_concat(concat("+columns+"), x'0a'), '') FROM "+table).Scan(&text))
	return text
}

// TestPruneClosesTheGuard: after it, and after one that failed, nothing can be removed. Indexes and hashes can never be.
func TestPruneClosesTheGuard(t *testing.T) {
	s := fresh(t)
	for i := range int64(2) {
		check.NoError(t, s.Update(context.Background(), addEntry(i)))
	}
	db := raw(t, s.path)
	before := dump(t, db, "hashes")
	failed := errors.New("a prune that fails")
	prune := func(tx ledger.Tx) error { return tx.Prune([]ledger.Range{{First: 0, Last: 0}}, nil, nil) }
	for want, do := range map[error]func(ledger.Tx) error{ // in any order
		failed: func(tx ledger.Tx) error { return errors.Join(prune(tx), failed) },
		nil:    prune,
	} {
		if err := s.Update(context.Background(), do); !errors.Is(err, want) {
			t.Fatal(err)
		}
		appendOnly(t, db, "UPDATE entries SET events = ''")
	}
	if n := entries(t, s); n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
	if after := dump(t, db, "hashes"); after != before {
		t.Errorf("the hashes were %s, and are %s", before, after)
	}
	run(t, db, "INSERT INTO pruning (since) VALUES (1)")
	for _, statement := range []string{
		"DELETE FROM entries", "UPDATE entries SET idx = idx + 10, events = ''", "UPDATE entries SET hashes = zeroblob(32), events = ''", "UPDATE entries SET by = 'x'",
	} {
		appendOnly(t, db, statement)
	}
}

// TestEventsView: people see each event of an entry in a row, also where the events are in a blob.
func TestEventsView(t *testing.T) {
	s := fresh(t)
	large := `[{"type":"request.created"},{"large":"` + strings.Repeat("x", ledger.MaxInline) + `","type":"decision.made"}]`
	digest := canonical.Sum(ledger.BlobValue, []byte(large))
	err := s.Update(context.Background(), func(tx ledger.Tx) error {
		small, referring, gone := entry(0), entry(1), entry(2)
		small.Events = []byte(`[{"n":1,"type":"run.claimed"},{"n":2,"type":"proxy.sent"}]`)
		referring.Events = []byte(ledger.Ref(digest))
		gone.Events = []byte(ledger.Ref("of-no-blob"))
		return errors.Join(tx.PutBlob(ledger.Blob{Digest: digest, Kind: ledger.BlobValue, Text: large}), tx.AddEntry(small, make([]tlog.Hash, 1)),
			tx.AddEntry(referring, make([]tlog.Hash, 2)), tx.AddEntry(gone, make([]tlog.Hash, 1)))
	})
	check.NoError(t, err)
	want := strings.Join([]string{
		`0|a|run.claimed|{"n":1,"type":"run.claimed"}`, `0|a|proxy.sent|{"n":2,"type":"proxy.sent"}`, `1|a|request.created|{"type":"request.created"}`,
		`1|a|decision.made|` + large[len(`[{"type":"request.created"},`):len(large)-1],
	}, "\n")
	if got := dump(t, raw(t, s.path), "events"); got != want {
		t.Errorf("the view is %s, want %s", got, want)
	}
}

// TestPlans: what is asked often is found by an index, in order.
func TestPlans(t *testing.T) {
	s := fresh(t)
	two := []ledger.Status{ledger.Pending}
	for _, tc := range []struct {
		name  string
		f     ledger.Filter
		index string
		sorts bool // few rows are sorted
	}{
		{"newest", ledger.Filter{Newest: true, Limit: 20}, "sqlite_autoindex_requests_1", false},
		{"page", ledger.Filter{After: "x", Limit: 20}, "sqlite_autoindex_requests_1 (run_id>?)", false},
		{"status", ledger.Filter{Statuses: two, Newest: true, Limit: 20}, "requests_status (status=?)", false},
		{"task", ledger.Filter{Task: "t", After: "x"}, "requests_task (task=? AND run_id>?)", false},
		{"open", ledger.Filter{Open: true}, "requests_open", false},
		{
			"counted-of-actor", ledger.Filter{Counted: true, Actor: "ann", Server: "files", Tool: "read", Since: "2026"},
			"requests_counted_actor (actor=? AND server=? AND tool=? AND <expr>>?)", true,
		},
		{
			"counted-of-task", ledger.Filter{Counted: true, Task: "t", Server: "files", Tool: "read", Since: "2026"},
			"requests_counted_task (task=? AND server=? AND tool=? AND <expr>>?)", true,
		},
		{
			"counted-of-actor-whatever-the-tool", ledger.Filter{Counted: true, Actor: "ann", Since: "2026"},
			"requests_counted_actor_at (actor=? AND <expr>>?)", true,
		},
		{"decided-and-open", ledger.Filter{Statuses: append(two, ledger.Denied), Open: true}, "requests_open", false},
		{"held", ledger.Filter{Held: true, Limit: 20}, "SCAN requests USING INDEX requests_held", false},
		{"held-and-denied", ledger.Filter{Held: true, Statuses: append(two, ledger.Denied), Limit: 20}, "SCAN requests USING INDEX requests_held", false},
		{"held-page", ledger.Filter{Held: true, Statuses: two, After: "x", Limit: 20}, "requests_held (run_id>?)", false},
		{"held-and-open", ledger.Filter{Held: true, Open: true, Statuses: two, After: "x", Limit: 20}, "requests_open (run_id>?)", false},
		{"approved-and-open", ledger.Filter{Statuses: two, Open: true, Limit: 20}, "requests_open", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			query, args := s.dialect.Requests(tc.f)
			text := planned(t, s, query, args...)
			if !strings.Contains(text, tc.index) || strings.Contains(text, "TEMP B-TREE") != tc.sorts {
				t.Errorf("plan %q, want %s, sorted afterwards: %t", text, tc.index, tc.sorts)
			}
		})
	}
}

// TestPlansOfOneRow: what a call waits for is one look into an index, however many rows there are.
func TestPlansOfOneRow(t *testing.T) {
	s := fresh(t)
	for _, tc := range []struct {
		name, query, index string
		args               []any
	}{
		{"entries-of-a-type", sqlrows.OfType, "USING INDEX entries_type (type=?)", []any{string(ledger.TokenCreated)}},
		{"entries-of-a-run", sqlrows.OfRun, "USING INDEX entries_run (run_id=?)", []any{"a"}},
		{"waiting", sqlrows.Waiting, "requests_waiting (actor=? AND server=? AND tool=? AND arguments=?)", []any{"ann", "", "", "files", "read", "d"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if text := planned(t, s, tc.query, tc.args...); !strings.Contains(text, tc.index) || strings.Contains(text, "TEMP B-TREE") {
				t.Errorf("plan %q, want %s and nothing sorted", text, tc.index)
			}
		})
	}
}

// planned says how SQLite would look for the rows of a query.
func planned(t *testing.T, s *Store, query string, args ...any) string {
	t.Helper()
	rows, err := s.writer.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	check.NoError(t, err)
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int64
		var step string
		check.NoError(t, rows.Scan(&id, &parent, &unused, &step))
		plan = append(plan, step)
	}
	check.NoError(t, rows.Err())
	return strings.Join(plan, "; ")
}
