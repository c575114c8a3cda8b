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

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
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
	if report.Requests != archiveRuns || report.Entries < archiveRuns || report.Blobs < 3 || report.Tokens < 3 {
		t.Errorf("the report %+v says less than was recorded", report)
	}
	if report.Deep != (ledger.Reexecution{Same: archiveRuns - 1}) { // but for the call in flight
		t.Errorf("the report %+v has runs that were not executed again", report)
	}
	if report.Complete {
		t.Error("complete without a checkpoint")
	}
	if done > total {
		t.Errorf("progress %d of %d", done, total)
	}
}

// A rawFile is a copy of a ledger's file at which its rows can be changed: its triggers are gone for as long as that takes.
type rawFile struct {
	*sql.DB
	path     string
	triggers map[string]string // what makes them, by name
}

func openRaw(t *testing.T, from string) *rawFile {
	t.Helper()
	text, err := os.ReadFile(from)
	check.NoError(t, err)
	path := filepath.Join(t.TempDir(), "copy.db")
	check.NoError(t, os.WriteFile(path, text, 0o600))
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=synchronous(0)&_pragma=busy_timeout(10000)")
	check.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	b := &rawFile{db, path, make(map[string]string)}
	for _, name := range b.texts(t, "SELECT name FROM sqlite_master WHERE type = 'trigger'") {
		b.triggers[name] = b.texts(t, "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = ?", name)[0]
	}
	return b
}

func (b *rawFile) do(t *testing.T, query string, args ...any) {
	t.Helper()
	for name := range b.triggers { // in any order
		b.exec(t, "DROP TRIGGER "+name)
	}
	b.exec(t, query, args...)
	for _, text := range b.triggers { // in any order
		b.exec(t, text)
	}
}

func (b *rawFile) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	if _, err := b.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func (b *rawFile) texts(t *testing.T, query string, args ...any) (all []string) {
	t.Helper()
	rows, err := b.Query(query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		check.NoError(t, rows.Scan(&s))
		all = append(all, s)
	}
	check.NoError(t, rows.Err())
	return all
}

// record are the tables of the record with what names a row of each, as SQL and as faults have it.
var record = []struct{ table, key, order, faults string }{
	{"entries", "CAST(idx AS TEXT)", "idx", "entries"},
	{"runs", runOf, "first", "requests"},
	{"blobs", "digest", "digest", "blobs"},
	{"tokens", "id", "id", "tokens"},
}

// runOf is the id of a run as faults have it.
const runOf = "(SELECT v.run_id FROM requests v WHERE v.first = runs.first)"

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
			b := openRaw(t, path)
			columns := b.texts(t, "SELECT name FROM pragma_table_info(?)", table.table)
			n := 0
			for i, row := range b.texts(t, "SELECT rowid FROM "+table.table+" ORDER BY "+table.order) {
				if i%stride != 0 && table.table != "tokens" && table.table != "blobs" {
					continue
				}
				for _, column := range columns {
					b.change(t, table.table, table.key, table.faults, column, row)
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
func (b *rawFile) change(t *testing.T, table, key, faults, column, row string) {
	t.Helper()
	name := b.texts(t, "SELECT "+key+" FROM "+table+" WHERE rowid = ?", row)[0]
	b.do(t, "CREATE TEMP TABLE kept AS SELECT rowid AS its_row, * FROM "+table+" WHERE rowid = ?", row)
	quoted := `"` + column + `"`
	size := "32" // of a digest
	if column == "run" || column == "owner" {
		size = "16"
	}
	b.do(t, "PRAGMA ignore_check_constraints = 1")
	b.do(t, "UPDATE "+table+" SET "+quoted+" = CASE typeof("+quoted+") WHEN 'integer' THEN "+quoted+
		" + 1000 WHEN 'blob' THEN randomblob(length("+quoted+")) WHEN 'null' THEN CASE (SELECT type FROM pragma_table_info('"+table+"') WHERE name = '"+column+
		"') WHEN 'INTEGER' THEN 3 WHEN 'BLOB' THEN randomblob("+size+") ELSE 'x' END ELSE "+quoted+" || 'x' END WHERE rowid = ?", row)
	now := row
	if table == "entries" && column == "idx" || table == "runs" && column == "first" {
		n, err := strconv.Atoi(row)
		check.NoError(t, err)
		now = strconv.Itoa(n + 1000)
	}
	_, err := verify(t, b.path, ledger.VerifyOptions{})
	isKey := strings.Contains(key, column) || column == "run" || column == "first"
	var fault *ledger.Fault
	if !errors.As(err, &fault) || !isKey && (fault.Table != faults || fault.Key != name) || isKey && !near(fault, faults) {
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
	return f.Table == table || table == "entries" && f.Table == "requests"
}

func TestVerifyNamesRowsThatAreMissing(t *testing.T) {
	path := archive(t)
	stride := every(t)
	for _, table := range record {
		t.Run(table.table, func(t *testing.T) {
			t.Parallel()
			b := openRaw(t, path)
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
				if seq, err := strconv.Atoi(name); err == nil && table.table == "entries" {
					names = append(names, strconv.Itoa(seq+1), strconv.Itoa(seq-1)) // the one that does not follow
				}
				var fault *ledger.Fault
				last := table.table == "entries" && i == len(rows)-1 // what the last event did is not as it says
				if !errors.As(err, &fault) || !last && (fault.Table != table.faults || !slices.Contains(names, fault.Key)) {
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

const entryColumns = "idx, at, run, n, previous, type, body, header, hashes"

func TestVerifyNamesRowsThatAreTooMany(t *testing.T) {
	path := archive(t)
	const other = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	const rest = ", at, run, n + 9, previous, type, body, header, hashes FROM entries WHERE idx = "
	for _, c := range []struct{ name, table, key, change string }{
		{"entry-once-more", "entries", "", "INSERT INTO entries (" + entryColumns + ") SELECT idx + 1" + rest + "(SELECT max(idx) FROM entries)"},
		{"entry-before-the-first", "entries", "-5", "PRAGMA ignore_check_constraints = 1; INSERT INTO entries (" + entryColumns + ") SELECT -5" + rest + "1"},
		{"request-of-no-entries", "requests", "00000000-0000-7000-8000-000000000000", `CREATE TEMP TABLE r AS SELECT * FROM runs LIMIT 1;
			UPDATE r SET first = 1000000, run = x'00000000000070008000000000000000'; INSERT INTO runs SELECT * FROM r`},
		{"entries-of-no-request", "requests", "", `DELETE FROM runs WHERE run = (SELECT max(run) FROM runs)`},
		{"blob-of-another-digest", "blobs", other, "INSERT INTO blobs SELECT '" + other + "', kind, text FROM blobs LIMIT 1"},
		{"blob-that-nothing-refers-to", "blobs", "", "INSERT INTO blobs VALUES ('" + blobOfNothing + "', 'blob', '[]')"},
		{"token-of-no-entry", "tokens", "zzzz", "INSERT INTO tokens SELECT 'zzzz', name, 'admin', secret, created, expires, revoked, entry FROM tokens LIMIT 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := openRaw(t, path)
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
		{"entries", "entries", "", `UPDATE entries SET idx = -1 WHERE idx = 20; UPDATE entries SET idx = 20 WHERE idx = 21; UPDATE entries SET idx = 21 WHERE idx = -1`},
		{"hashes", "entries", "", `UPDATE entries SET hashes = (SELECT e.hashes FROM entries e WHERE e.idx = 41 - entries.idx) WHERE idx IN (20, 21)`},
		{"requests", "requests", "", `CREATE TEMP TABLE r AS SELECT min(run) AS low, max(run) AS high FROM runs;
			UPDATE runs SET run = zeroblob(16) WHERE run = (SELECT low FROM r);
			UPDATE runs SET run = (SELECT low FROM r) WHERE run = (SELECT high FROM r);
			UPDATE runs SET run = (SELECT high FROM r) WHERE run = zeroblob(16)`},
		{"half-a-value", "entries", "", `UPDATE entries SET body = '{' WHERE idx = 20`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := openRaw(t, path)
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
	var c checkpoint.Checkpoint
	skeletonOf(t, path, func(r ledger.Reader) (err error) {
		c, err = ledger.TakeCheckpoint(r)
		return err
	})
	another := c
	another.Root = tlog.Hash{1}
	half := c
	skeletonOf(t, path, func(r ledger.Reader) (err error) {
		half.Size = c.Size / 2
		half.Root, err = tlog.TreeHash(half.Size, r)
		return err
	})
	later := c
	later.Size++
	empty, err := tlog.TreeHash(0, nil)
	check.NoError(t, err)
	for _, tt := range []struct {
		name       string
		checkpoint checkpoint.Checkpoint
		what       string // a part of the fault; empty if there is none
	}{
		{"of-now", c, ""},
		{"of-before", half, ""},
		{"of-the-empty-log", checkpoint.Checkpoint{Origin: c.Origin, Root: empty}, ""},
		{"rewritten", another, "not those of the checkpoint"},
		{"cut", later, "the last ones were removed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report, err := verify(t, path, ledger.VerifyOptions{Checkpoint: &tt.checkpoint})
			var fault *ledger.Fault
			switch {
			case tt.what == "":
				if err != nil || !report.Complete {
					t.Errorf("Verify() = %+v, %v", report, err)
				}
			case !errors.As(err, &fault) || !strings.Contains(fault.What, tt.what):
				t.Errorf("Verify() = %v, want %q", err, tt.what)
			}
		})
	}
}

// TestVerifyACutEnd removes the last run with everything that it left: only the checkpoint knows of it.
func TestVerifyACutEnd(t *testing.T) {
	path := archive(t)
	var c checkpoint.Checkpoint
	skeletonOf(t, path, func(r ledger.Reader) (err error) {
		c, err = ledger.TakeCheckpoint(r)
		return err
	})
	b := openRaw(t, path)
	run := b.texts(t, "SELECT run_id FROM events ORDER BY idx DESC LIMIT 1")[0]
	first, err := strconv.ParseInt(b.texts(t, "SELECT first FROM requests WHERE run_id = ?", run)[0], 10, 64)
	if err != nil || first < c.Size-2 {
		t.Fatalf("the last run begins at %d, %v: the test is blind", first, err)
	}
	b.do(t, "DELETE FROM entries WHERE idx >= ?", first)
	b.do(t, "DELETE FROM runs WHERE first = ?", first)
	const uses = "FROM entries WHERE instr(body, '@' || digest) OR body LIKE '%command.started%' AND instr(body, digest)"
	b.do(t, "DELETE FROM blobs WHERE NOT EXISTS (SELECT 1 "+uses+")")
	if report, err := verify(t, b.path, ledger.VerifyOptions{}); err != nil || report.Complete {
		t.Fatalf("without the checkpoint: Verify() = %+v, %v", report, err)
	}
	_, err = verify(t, b.path, ledger.VerifyOptions{Checkpoint: &c})
	var fault *ledger.Fault
	if !errors.As(err, &fault) || fault.Table != "tree" || !strings.Contains(fault.What, "the last ones were removed") {
		t.Errorf("with the checkpoint: Verify() = %v", err)
	}
}

func TestVerifyAnEmptyLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pgfsm.db")
	store, err := sqlite.Open(path)
	check.NoError(t, err)
	check.NoError(t, store.Close())
	report, err := verify(t, path, ledger.VerifyOptions{})
	if err != nil || report.Size != 0 || report.Entries != 0 {
		t.Errorf("Verify() = %+v, %v", report, err)
	}
}

func TestVerifyIsCancelled(t *testing.T) {
	path := archive(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	skeletonOf(t, path, func(r ledger.Reader) error {
		if _, err := ledger.Verify(ctx, r, ledger.VerifyOptions{}); !errors.Is(err, context.Canceled) {
			t.Errorf("Verify() = %v, want that it was cancelled", err)
		}
		return nil
	})
}
