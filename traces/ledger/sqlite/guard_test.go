package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

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
		"UPDATE entries SET at = 7", "UPDATE entries SET at = at WHERE idx = 0", "UPDATE entries SET idx = idx + 10", "DELETE FROM entries",
		"UPDATE entries SET hashes = zeroblob(32)", "UPDATE entries SET body = '{}'", "UPDATE entries SET run = NULL, body = NULL, header = '{}'", "DELETE FROM entries WHERE idx = 0",
		"INSERT OR REPLACE INTO entries SELECT * FROM entries WHERE idx = 0", "REPLACE INTO entries SELECT * FROM entries",
		"INSERT OR IGNORE INTO entries SELECT * FROM entries", "UPDATE OR REPLACE entries SET idx = 0",
		"INSERT INTO entries SELECT * FROM entries WHERE true ON CONFLICT DO UPDATE SET at = 7",
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
		"entries": "idx, '|', hex(run), '|', n, '|', previous, '|', at, '|', type, '|', body, '|', header", "hashes": "idx, '|', hex(hashes)", "pruning": "since",
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
	prune := func(tx ledger.Tx) error {
		return tx.Prune([]ledger.PrunedEntry{{Index: 0, Header: []byte("{}")}}, nil, nil)
	}
	for want, do := range map[error]func(ledger.Tx) error{ // in any order
		failed: func(tx ledger.Tx) error { return errors.Join(prune(tx), failed) },
		nil:    prune,
	} {
		if err := s.Update(context.Background(), do); !errors.Is(err, want) {
			t.Fatal(err)
		}
		appendOnly(t, db, emptied)
	}
	if rows, want := dump(t, db, "entries"), "0||"; !strings.HasPrefix(rows, want) {
		t.Errorf("the entries are %s, want the first one without its run", rows)
	}
	if after := dump(t, db, "hashes"); after != before {
		t.Errorf("the hashes were %s, and are %s", before, after)
	}
	run(t, db, "INSERT INTO pruning (since) VALUES (1)")
	for _, statement := range []string{
		"DELETE FROM entries", emptied + ", idx = idx + 10", emptied + ", hashes = zeroblob(32)", emptied + ", at = 7", emptied + ", n = 7", emptied + ", previous = 7",
		emptied + ", type = 'token.revoked'", "UPDATE entries SET body = '{}', header = NULL", "UPDATE entries SET header = '{}' WHERE idx = 0",
	} {
		appendOnly(t, db, statement)
	}
}

// emptied removes bodies, as a prune does.
const emptied = "UPDATE entries SET run = NULL, body = NULL, header = '{}'"

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
		{"newest", ledger.Filter{Newest: true, Limit: 20}, "sqlite_autoindex_runs_1", false},
		{"page", ledger.Filter{After: runID, Limit: 20}, "sqlite_autoindex_runs_1 (run>?)", false},
		{"status", ledger.Filter{Statuses: two, Newest: true, Limit: 20}, "runs_status (status=?)", false},
		{"task", ledger.Filter{Task: "t", After: runID}, "runs_task (task=? AND run>?)", false},
		{"open", ledger.Filter{Open: true}, "runs_open", false},
		{
			"counted-of-actor", ledger.Filter{Counted: true, Actor: "ann", Server: "files", Tool: "read", Since: "2026"},
			"runs_counted_actor (actor=? AND server=? AND tool=? AND <expr>>?)", true,
		},
		{
			"counted-of-task", ledger.Filter{Counted: true, Task: "t", Server: "files", Tool: "read", Since: "2026"},
			"runs_counted_task (task=? AND server=? AND tool=? AND <expr>>?)", true,
		},
		{
			"counted-of-actor-whatever-the-tool", ledger.Filter{Counted: true, Actor: "ann", Since: "2026"},
			"runs_counted_actor_at (actor=? AND <expr>>?)", true,
		},
		{"call-of-a-session", ledger.Filter{Actor: "ann", Session: "claude/s-1", ClientCall: "c-1", Limit: 1}, "runs_client_call (session=? AND client_call=?)", false},
		{"decided-and-open", ledger.Filter{Statuses: append(two, ledger.Denied), Open: true}, "runs_open", false},
		{"held", ledger.Filter{Held: true, Limit: 20}, "SCAN runs USING INDEX runs_held", false},
		{"held-and-denied", ledger.Filter{Held: true, Statuses: append(two, ledger.Denied), Limit: 20}, "SCAN runs USING INDEX runs_held", false},
		{"held-page", ledger.Filter{Held: true, Statuses: two, After: runID, Limit: 20}, "runs_held (run>?)", false},
		{"held-and-open", ledger.Filter{Held: true, Open: true, Statuses: two, After: runID, Limit: 20}, "runs_open (run>?)", false},
		{"approved-and-open", ledger.Filter{Statuses: two, Open: true, Limit: 20}, "runs_open", false},
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
		{"entries-of-a-type", sqlrows.OfType, "USING INDEX entries_type (type=? AND rowid>?)", []any{string(ledger.TokenCreated), 0}},
		{"waiting", sqlrows.Waiting, "runs_waiting (actor=? AND server=? AND tool=? AND arguments=?)", []any{"ann", "", "", "files", "read", make([]byte, 32), "agent"}},
		{"waiting-of-a-hook", sqlrows.WaitingDelegated, "runs_waiting (actor=? AND server=? AND tool=? AND arguments=?)",
			[]any{"ann", "", "", "files", "read", make([]byte, 32), "hook", "claude/s-1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if text := planned(t, s, tc.query, tc.args...); !strings.Contains(text, tc.index) || strings.Contains(text, "TEMP B-TREE") {
				t.Errorf("plan %q, want %s and nothing sorted", text, tc.index)
			}
		})
	}
}

// TestPlanOfARunsEntries: each entry of a run is found by its index, however many entries there are.
func TestPlanOfARunsEntries(t *testing.T) {
	text := planned(t, fresh(t), sqlrows.OfRun, make([]byte, 16))
	for _, want := range []string{"SEARCH runs USING INDEX sqlite_autoindex_runs_1 (run=?)", "SEARCH b USING INTEGER PRIMARY KEY", "SEARCH e USING INTEGER PRIMARY KEY"} {
		if !strings.Contains(text, want) {
			t.Errorf("plan %q, want %s", text, want)
		}
	}
}

// TestPutRunWritesFewIndexes: a run's row changes up to the end of the run, and the indexes of what never changes are left alone.
func TestPutRunWritesFewIndexes(t *testing.T) {
	s := fresh(t)
	check.NoError(t, s.Update(t.Context(), func(tx ledger.Tx) error {
		return errors.Join(tx.AddRun(runRow(ledger.Pending)), tx.PutRun(runRow(ledger.Executed)))
	}))
	for query := range s.writes.prepared { // in any order
		if !strings.HasPrefix(query, "UPDATE runs ") {
			continue
		}
		rows, err := s.writer.QueryContext(t.Context(), "EXPLAIN "+query, make([]any, strings.Count(query, "?"))...)
		check.NoError(t, err)
		defer rows.Close()
		var written []string
		for rows.Next() {
			var opcode, name string
			var page, unused any
			check.NoError(t, rows.Scan(&unused, &opcode, &unused, &page, &unused, &unused, &unused, &unused))
			if opcode != "OpenWrite" {
				continue
			}
			check.NoError(t, s.readers.QueryRow("SELECT name FROM sqlite_schema WHERE rootpage = ?", page).Scan(&name))
			written = append(written, name)
		}
		check.NoError(t, rows.Err())
		slices.Sort(written)
		want := []string{"runs", "runs_client_call", "runs_counted_actor", "runs_counted_actor_at", "runs_counted_task", "runs_held", "runs_open", "runs_status", "runs_waiting"}
		if !slices.Equal(written, want) {
			t.Errorf("PutRun writes %v, want %v", written, want)
		}
		return
	}
	t.Error("PutRun ran no UPDATE")
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
