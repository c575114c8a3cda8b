package sqlite

import (
	"context"
	"strings"
	"testing"

	"pgfsm/traces/ledger"
)

// TestAppendOnlyByTrigger: whatever program opens the file.
func TestAppendOnlyByTrigger(t *testing.T) {
	s := fresh(t)
	err := s.Update(context.Background(), func(tx ledger.Tx) error {
		if err := addEvent(1)(tx); err != nil {
			return err
		}
		if err := addEvent(2)(tx); err != nil {
			return err
		}
		return tx.AddDecision(ledger.Decision{Seq: 2, RunID: "a", Outcome: "allow"})
	})
	if err != nil {
		t.Fatal(err)
	}
	db := raw(t, s.path)
	for _, statement := range []string{
		"UPDATE %s SET at = 'x'", "UPDATE %s SET at = at WHERE seq = 1", "UPDATE %s SET seq = seq + 10", "DELETE FROM %s", "DELETE FROM %s WHERE seq = 1",
		"INSERT OR REPLACE INTO %s SELECT * FROM %s WHERE seq = 1", "REPLACE INTO %s SELECT * FROM %s", "INSERT OR IGNORE INTO %s SELECT * FROM %s",
		"UPDATE OR REPLACE %s SET seq = 1", "INSERT INTO %s SELECT * FROM %s WHERE true ON CONFLICT DO UPDATE SET at = 'x'",
	} {
		for _, table := range []string{"events", "decisions"} {
			statement := strings.ReplaceAll(statement, "%s", table)
			if table == "decisions" {
				statement = strings.ReplaceAll(statement, "seq = 1", "seq = 2")
			}
			before := dump(t, s, table)
			_, err := db.Exec(statement)
			if err == nil || !strings.Contains(err.Error(), table+" are append-only") {
				t.Errorf("%s: %v, want it to be refused", statement, err)
			}
			if after := dump(t, s, table); after != before {
				t.Errorf("%s: changed %s to %s", statement, before, after)
			}
		}
	}
	if n := asked[int64](t, s, "SELECT count(*) FROM pruning"); n != 0 {
		t.Errorf("pruning has %d rows", n)
	}
}

// dump returns all of a table.
func dump(t *testing.T, s *Store, table string) string {
	t.Helper()
	columns := map[string]string{"events": eventColumns, "decisions": "seq, run_id, at"}[table]
	return asked[string](t, s, "SELECT coalesce(group_concat(concat_ws('|', "+columns+"), x'0a'), '') FROM "+table)
}

// TestPruneClosesTheGuard: after it, and after one that failed, nothing can be removed.
func TestPruneClosesTheGuard(t *testing.T) {
	s := fresh(t)
	if err := s.Update(context.Background(), addEvent(1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(context.Background(), addEvent(2)); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(context.Background(), func(tx ledger.Tx) error { return tx.Prune(1, nil) }); err != nil {
		t.Fatal(err)
	}
	if _, err := raw(t, s.path).Exec("DELETE FROM events"); err == nil {
		t.Error("the guard is open after pruning")
	}
	if n := events(t, s); n != 1 {
		t.Errorf("%d events, want 1", n)
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
		{"actor", ledger.Filter{Actor: "ann", Newest: true}, "requests_actor (actor=?)", false},
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
		{"text-of-actor", ledger.Filter{Actor: "ann", Text: "x", Newest: true}, "requests_actor (actor=?)", false},
		{"decided-and-open", ledger.Filter{Statuses: append(two, ledger.Denied), Open: true}, "requests_open", false},
		{"held", ledger.Filter{Held: true, Limit: 20}, "SCAN requests USING INDEX requests_held", false},
		{"held-and-denied", ledger.Filter{Held: true, Statuses: append(two, ledger.Denied), Limit: 20}, "SCAN requests USING INDEX requests_held", false},
		{"held-page", ledger.Filter{Held: true, Statuses: two, After: "x", Limit: 20}, "requests_held (run_id>?)", false},
		{"held-and-open", ledger.Filter{Held: true, Open: true, Statuses: two, After: "x", Limit: 20}, "requests_open (run_id>?)", false},
		{"approved-and-open", ledger.Filter{Statuses: two, Open: true, Limit: 20}, "requests_open", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			query, args := filtered(tc.f)
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
		{"token-events", tokenEvents, "USING INDEX events_tokens", nil},
		{"last-prune", lastPrune, "USING INDEX events_pruned", nil},
		{"waiting", waiting, "requests_waiting (actor=? AND server=? AND tool=? AND arguments=?)", []any{"ann", "files", "read", "d"}},
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
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int64
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, step)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "; ")
}
