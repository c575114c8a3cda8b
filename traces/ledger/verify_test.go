package ledger_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgfsm/policy/canonical"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlite"
)

func TestVerifyFindsNothingWrong(t *testing.T) {
	path := archive(t)
	p := traces.NewReplayer(statestest.MustMachine(t), nil)
	var done, total int64
	report, err := verify(t, path, ledger.VerifyOptions{Replayer: p, Progress: func(d, n int64) { done, total = d, n }})
	if err != nil {
		t.Fatalf("Verify() = %v", err)
	}
	if report.Requests != archiveRuns || report.Events < 4*archiveRuns || report.Blobs < 3 || report.Tokens < 3 {
		t.Errorf("the report %+v says less than was recorded", report)
	}
	if report.Decisions < archiveRuns/2 || report.Deep != (ledger.Reexecution{Same: archiveRuns - 1}) { // but for the call in flight
		t.Errorf("the report %+v has few decisions, or runs that were not executed again", report)
	}
	if report.Complete {
		t.Error("complete without a checkpoint")
	}
	if done > total {
		t.Errorf("progress %d of %d", done, total)
	}
}

func TestEveryTraceOfALedgerReplays(t *testing.T) {
	path := archive(t)
	p := traces.NewReplayer(statestest.MustMachine(t), nil)
	n, unfinished := 0, 0
	look(t, path, func(r ledger.Reader) error {
		for q, err := range r.Requests(ledger.Filter{}) {
			if err != nil {
				return err
			}
			doc, err := ledger.Trace(context.Background(), r, q.RunID, p)
			if errors.Is(err, ledger.ErrUnfinished) {
				unfinished++
				continue
			}
			if err != nil {
				return err
			}
			trace, err := traces.Read(doc)
			if err != nil {
				return fmt.Errorf("run %s: %w", q.RunID, err)
			}
			if _, err := p.Replay(trace); err != nil {
				return fmt.Errorf("run %s: %w", q.RunID, err)
			}
			if q.Ended != "" && trace.Head != q.Head {
				t.Errorf("run %s: the trace's head is %s, the request's %s", q.RunID, trace.Head, q.Head)
			}
			n++
		}
		return nil
	})
	if n != archiveRuns-1 || unfinished != 1 {
		t.Errorf("%d traces, %d runs under way, want %d and 1", n, unfinished, archiveRuns-1)
	}
}

// A bench is a copy of a ledger's file at which its rows can be changed: its triggers are gone for as long as that takes.
type bench struct {
	*sql.DB
	path     string
	triggers map[string]string // what makes them, by name
}

func newBench(t *testing.T, from string) *bench {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=synchronous(0)&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	b := &bench{db, path, make(map[string]string)}
	for _, name := range b.texts(t, "SELECT name FROM sqlite_master WHERE type = 'trigger'") {
		b.triggers[name] = b.texts(t, "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = ?", name)[0]
	}
	return b
}

func (b *bench) do(t *testing.T, query string, args ...any) {
	t.Helper()
	for name := range b.triggers { // in any order
		b.exec(t, "DROP TRIGGER "+name)
	}
	b.exec(t, query, args...)
	for _, text := range b.triggers { // in any order
		b.exec(t, text)
	}
}

func (b *bench) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	if _, err := b.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func (b *bench) texts(t *testing.T, query string, args ...any) (all []string) {
	t.Helper()
	rows, err := b.Query(query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// record are the tables of the record with what names a row of each, as SQL and as faults have it.
var record = []struct{ table, key, order string }{
	{"events", "CAST(seq AS TEXT)", "seq"},
	{"requests", "run_id", "run_id"},
	{"decisions", "CAST(seq AS TEXT)", "seq"},
	{"blobs", "digest", "digest"},
	{"tokens", "id", "id"},
}

// every says how many rows are passed over for each that is tampered with: the whole takes minutes.
func every(t *testing.T) int {
	switch {
	case os.Getenv("PGFSM_TAMPER") == "all":
		return 1
	case os.Getenv("PGFSM_SOAK") != "":
		return 23
	}
	return 101
}

// TestVerifyNamesEveryChangedField changes each column of rows of each table, one after the other.
func TestVerifyNamesEveryChangedField(t *testing.T) {
	path := archive(t)
	stride := every(t)
	for _, table := range record {
		t.Run(table.table, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, path)
			columns := b.texts(t, "SELECT name FROM pragma_table_info(?)", table.table)
			n := 0
			for i, row := range b.texts(t, "SELECT rowid FROM "+table.table+" ORDER BY "+table.order) {
				if i%stride != 0 && table.table != "tokens" && table.table != "blobs" {
					continue
				}
				for _, column := range columns {
					b.change(t, table.table, table.key, column, row)
					n++
				}
			}
			if n < len(columns) {
				t.Errorf("only %d changes were made", n)
			}
			t.Logf("%d changes", n)
		})
	}
}

// change changes one field and wants to hear of that row. A row whose key was changed is missing, and is one too many:
// either is named.
func (b *bench) change(t *testing.T, table, key, column, row string) {
	t.Helper()
	name := b.texts(t, "SELECT "+key+" FROM "+table+" WHERE rowid = ?", row)[0]
	b.do(t, "CREATE TEMP TABLE kept AS SELECT rowid AS its_row, * FROM "+table+" WHERE rowid = ?", row)
	quoted := `"` + column + `"`
	b.do(t, "UPDATE "+table+" SET "+quoted+" = CASE typeof("+quoted+") WHEN 'integer' THEN "+quoted+" + 1000 ELSE "+quoted+
		" || 'x' END WHERE rowid = ?", row)
	now := row
	if (table == "events" || table == "decisions") && column == "seq" {
		n, err := strconv.Atoi(row)
		if err != nil {
			t.Fatal(err)
		}
		now = strconv.Itoa(n + 1000)
	}
	_, err := verify(t, b.path, ledger.VerifyOptions{})
	isKey := strings.Contains(key, column)
	var fault *ledger.Fault
	if !errors.As(err, &fault) || !isKey && (fault.Table != table || fault.Key != name) || isKey && !near(fault, table) {
		t.Errorf("%s %s, %s changed: Verify() = %v", table, name, column, err)
	}
	columns := b.texts(t, "SELECT name FROM pragma_table_info(?)", table)
	sets := make([]string, len(columns))
	for i, c := range columns {
		sets[i] = fmt.Sprintf(`"%s" = (SELECT "%s" FROM kept)`, c, c)
	}
	b.do(t, "UPDATE "+table+" SET "+strings.Join(sets, ", ")+" WHERE rowid = ?", now)
	b.do(t, "DROP TABLE kept")
}

// near are the tables in which a row of another key is found missing.
func near(f *ledger.Fault, table string) bool {
	return f.Table == table || table == "events" && f.Table == "requests"
}

func TestVerifyNamesRowsThatAreMissing(t *testing.T) {
	path := archive(t)
	stride := every(t)
	for _, table := range record {
		t.Run(table.table, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, path)
			rows := b.texts(t, "SELECT rowid FROM "+table.table+" ORDER BY "+table.order)
			for i, row := range rows {
				if i%stride != 0 && i != len(rows)-1 {
					continue
				}
				name := b.texts(t, "SELECT "+table.key+" FROM "+table.table+" WHERE rowid = ?", row)[0]
				b.do(t, "CREATE TEMP TABLE kept AS SELECT rowid AS its_row, * FROM "+table.table+" WHERE rowid = ?", row)
				b.do(t, "DELETE FROM "+table.table+" WHERE rowid = ?", row)
				_, err := verify(t, b.path, ledger.VerifyOptions{})
				names := []string{name}
				if seq, err := strconv.Atoi(name); err == nil && table.table == "events" {
					names = append(names, strconv.Itoa(seq+1), strconv.Itoa(seq-1)) // the one that does not follow
				}
				var fault *ledger.Fault
				last := table.table == "events" && i == len(rows)-1 // what the last event did is not as it says
				if !errors.As(err, &fault) || !last && (fault.Table != table.table || !slices.Contains(names, fault.Key)) {
					t.Errorf("%s %s removed: Verify() = %v", table.table, name, err)
				}
				columns := `"` + strings.Join(b.texts(t, "SELECT name FROM pragma_table_info(?)", table.table), `", "`) + `"`
				b.do(t, "INSERT INTO "+table.table+" (rowid, "+columns+") SELECT its_row, "+columns+" FROM kept")
				b.do(t, "DROP TABLE kept")
			}
			if _, err := verify(t, b.path, ledger.VerifyOptions{}); err != nil {
				t.Errorf("with all rows back: Verify() = %v", err)
			}
		})
	}
}

// The columns of an event and of a step; the others of their rows are about those that stand before it.
const (
	eventColumns = "seq, run_id, type, at, by, payload, prev, run_prev, hash"
)

func TestVerifyNamesRowsThatAreTooMany(t *testing.T) {
	path := archive(t)
	const other = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	for _, c := range []struct{ name, table, key, change string }{
		{"event-once-more", "events", "", `INSERT INTO events (` + eventColumns + `)
			SELECT (SELECT max(seq) + 1 FROM events), run_id, type, at, by, payload, prev, run_prev, hash
			FROM events WHERE seq = (SELECT max(seq) FROM events)`},
		{"event-before-the-first", "events", "-5", `PRAGMA ignore_check_constraints = 1; INSERT INTO events (` + eventColumns + `)
			SELECT -5, run_id, type, at, by, payload, prev, run_prev, hash FROM events WHERE seq = 1`},
		{"request-of-no-events", "requests", "00000000-0000-7000-8000-000000000000", `CREATE TEMP TABLE r AS SELECT * FROM requests LIMIT 1;
			UPDATE r SET run_id = '00000000-0000-7000-8000-000000000000'; INSERT INTO requests SELECT * FROM r`},
		{"events-of-no-request", "requests", "", `DELETE FROM requests WHERE run_id = (SELECT max(run_id) FROM requests)`},
		{"decision-of-no-event", "decisions", "", `INSERT INTO decisions SELECT (SELECT max(seq) + 1 FROM events), run_id, at, outcome, policy,
			condition, bundle, code, reason FROM decisions LIMIT 1`},
		{"decision-of-another-event", "decisions", "1", `INSERT INTO decisions SELECT 1, run_id, at, outcome, policy, condition, bundle, code, reason
			FROM decisions LIMIT 1`},
		{"blob-of-another-digest", "blobs", other, "INSERT INTO blobs SELECT '" + other + "', kind, used, text FROM blobs LIMIT 1"},
		{"blob-that-nothing-refers-to", "blobs", "", "INSERT INTO blobs VALUES ('" + blobOfNothing + "', 'blob', 1, '[]')"},
		{"token-of-no-event", "tokens", "zzzz", "INSERT INTO tokens SELECT 'zzzz', name, 'admin', secret, created, expires, revoked, seq FROM tokens LIMIT 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, path)
			b.do(t, c.change)
			_, err := verify(t, b.path, ledger.VerifyOptions{})
			var fault *ledger.Fault
			if !errors.As(err, &fault) || fault.Table != c.table || c.key != "" && fault.Key != c.key {
				t.Errorf("Verify() = %v, want %s %s", err, c.table, c.key)
			}
		})
	}
}

func TestVerifyNamesRowsThatWereSwapped(t *testing.T) {
	path := archive(t)
	for _, c := range []struct{ name, table, what, change string }{
		{"events", "events", "", `UPDATE events SET seq = -1 WHERE seq = 20; UPDATE events SET seq = 20 WHERE seq = 21; UPDATE events SET seq = 21 WHERE seq = -1`},
		{"requests", "requests", "", `UPDATE requests SET run_id = 'x' WHERE run_id = (SELECT min(run_id) FROM requests);
			UPDATE requests SET run_id = (SELECT min(run_id) FROM events WHERE run_id <> '') WHERE run_id = (SELECT max(run_id) FROM events);
			UPDATE requests SET run_id = (SELECT max(run_id) FROM events WHERE run_id <> '') WHERE run_id = 'x'`},
		{"decisions", "decisions", "", `UPDATE decisions SET run_id = (SELECT max(run_id) FROM requests) WHERE seq = (SELECT min(seq) FROM decisions)`},
		{"half-a-value", "events", "", `UPDATE events SET payload = '{' WHERE seq = 20`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, path)
			b.do(t, "PRAGMA ignore_check_constraints = 1")
			b.do(t, c.change)
			_, err := verify(t, b.path, ledger.VerifyOptions{})
			var fault *ledger.Fault
			if !errors.As(err, &fault) || fault.Table != c.table || !strings.Contains(fault.What, c.what) {
				t.Errorf("Verify() = %v, want a fault of %s: %s", err, c.table, c.what)
			}
		})
	}
}

// blobOfNothing is the digest of a blob that holds an empty list.
var blobOfNothing = string(canonical.Sum(ledger.BlobValue, []byte("[]")))

func TestVerifyAndCheckpoints(t *testing.T) {
	path := archive(t)
	var c ledger.Checkpoint
	look(t, path, func(r ledger.Reader) (err error) {
		c, err = ledger.TakeCheckpoint(r)
		return err
	})
	another := c
	another.Head = ledger.Origin
	half := c
	look(t, path, func(r ledger.Reader) error {
		for e, err := range r.Events(c.Size/2 - 1) {
			half = ledger.Checkpoint{Size: e.Seq, Head: e.Hash}
			return err
		}
		return nil
	})
	later := ledger.Checkpoint{Size: c.Size + 1, Head: c.Head}
	for _, tt := range []struct {
		name       string
		checkpoint ledger.Checkpoint
		key        string // of the fault; empty if there is none
	}{
		{"of-now", c, ""},
		{"of-before", half, ""},
		{"of-the-empty-ledger", ledger.Checkpoint{Head: ledger.Origin}, ""},
		{"the-past-written-anew", another, fmt.Sprint(c.Size)},
		{"the-end-cut-off", later, fmt.Sprint(c.Size + 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report, err := verify(t, path, ledger.VerifyOptions{Checkpoint: &tt.checkpoint})
			var fault *ledger.Fault
			switch {
			case tt.key == "":
				if err != nil || !report.Complete {
					t.Errorf("Verify() = %+v, %v", report, err)
				}
			case !errors.As(err, &fault) || fault.Table != "events" || fault.Key != tt.key:
				t.Errorf("Verify() = %v, want event %s", err, tt.key)
			}
		})
	}
}

// TestVerifyACutEnd removes the last run with everything that it left: only the checkpoint knows of it.
func TestVerifyACutEnd(t *testing.T) {
	path := archive(t)
	var c ledger.Checkpoint
	look(t, path, func(r ledger.Reader) (err error) {
		c, err = ledger.TakeCheckpoint(r)
		return err
	})
	b := newBench(t, path)
	run := b.texts(t, "SELECT run_id FROM events ORDER BY seq DESC LIMIT 1")[0]
	for _, table := range []string{"events", "requests", "decisions"} {
		b.do(t, "DELETE FROM "+table+" WHERE run_id = ?", run)
	}
	const uses = "FROM events WHERE instr(payload, '@' || digest) OR type = 'request.created' AND instr(payload, digest)"
	b.do(t, "DELETE FROM blobs WHERE NOT EXISTS (SELECT 1 "+uses+")")
	b.do(t, "UPDATE blobs SET used = (SELECT max(seq) "+uses+")")
	if report, err := verify(t, b.path, ledger.VerifyOptions{}); err != nil || report.Complete {
		t.Fatalf("without the checkpoint: Verify() = %+v, %v", report, err)
	}
	_, err := verify(t, b.path, ledger.VerifyOptions{Checkpoint: &c})
	var fault *ledger.Fault
	if !errors.As(err, &fault) || fault.Table != "events" || !strings.Contains(fault.What, "cut off") {
		t.Errorf("with the checkpoint: Verify() = %v", err)
	}
}

func TestVerifyAnEmptyLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pgfsm.db")
	store, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := verify(t, path, ledger.VerifyOptions{Checkpoint: &ledger.Checkpoint{Head: ledger.Origin}})
	if err != nil || report.Head != ledger.Origin || report.Events != 0 {
		t.Errorf("Verify() = %+v, %v", report, err)
	}
}

func TestVerifyIsCancelled(t *testing.T) {
	path := archive(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	look(t, path, func(r ledger.Reader) error {
		if _, err := ledger.Verify(ctx, r, ledger.VerifyOptions{}); !errors.Is(err, context.Canceled) {
			t.Errorf("Verify() = %v, want that it was cancelled", err)
		}
		return nil
	})
}
