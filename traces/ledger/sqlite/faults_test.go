package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
)

func fresh(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "ledger.db"))
	check.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// raw opens the file as any program does.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	check.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func run(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

const (
	early = "2026-01-01T00:00:00.000Z"
	runID = "01a20937-927b-7666-a7a9-3a3ce7bb963b"
)

func entry(index int64) ledger.Entry {
	return ledger.Entry{Index: index, RunID: runID, At: early, Body: []byte("{}")}
}

// runRow returns the row of a run with what every row has.
func runRow(status ledger.Status) ledger.RunRow {
	return ledger.RunRow{RunID: runID, At: early, Updated: early, Bundle: canonical.Sum("test"), Status: status}
}

// addEntry adds an entry with one hash.
func addEntry(index int64) func(ledger.Tx) error {
	return func(tx ledger.Tx) error {
		e := entry(index)
		return tx.AddEntry(e, []tlog.Hash{tlog.RecordHash(e.Leaf())})
	}
}

func entries(t *testing.T, s ledger.Store) int {
	t.Helper()
	n := 0
	err := s.View(context.Background(), func(r ledger.Reader) error {
		for _, err := range r.Entries(0) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	check.NoError(t, err)
	return n
}

// refused checks that an error is the right one, and says which file and what to do.
func refused(t *testing.T, err, want error, path, remedy string) {
	t.Helper()
	if passes := want == ErrFull || want == ErrLocked || want == ErrReadOnly; errors.Is(err, ledger.ErrUnavailable) != passes {
		t.Errorf("error %v: that nothing was recorded, and may be later, is %t, want %t", err, !passes, passes)
	}
	if !errors.Is(err, want) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), remedy) {
		t.Errorf("error %v, want %q about %s with %q", err, want, path, remedy)
	}
}

func TestFullDisk(t *testing.T) {
	s := fresh(t)
	check.NoError(t, s.Update(context.Background(), addEntry(1)))
	pages := asked[int64](t, s, "PRAGMA page_count")
	asked[int64](t, s, fmt.Sprint("PRAGMA max_page_count = ", pages))
	large := strings.Repeat("x", 1<<20)
	err := s.Update(context.Background(), func(tx ledger.Tx) error {
		if err := addEntry(2)(tx); err != nil {
			return err
		}
		return tx.PutBlob(ledger.Blob{Digest: "d", Text: large})
	})
	refused(t, err, ErrFull, s.path, "make room")
	// SQLite ends the whole transaction with this error: what its function writes afterwards must not stand alone.
	err = s.Update(context.Background(), func(tx ledger.Tx) error {
		if tx.PutBlob(ledger.Blob{Digest: "d", Text: large}) == nil {
			t.Error("there is room")
		}
		if addEntry(2)(tx) == nil {
			t.Error("a transaction that failed can be written")
		}
		return nil
	})
	refused(t, err, ErrFull, s.path, "make room")
	if n := entries(t, s); n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
	asked[int64](t, s, "PRAGMA max_page_count = 1000000")
	if err := s.Update(context.Background(), addEntry(2)); err != nil {
		t.Errorf("there is room again: %v", err)
	}
}

// asked returns what the writer's connection answers.
func asked[T any](t *testing.T, s *Store, query string) (v T) {
	t.Helper()
	check.NoError(t, s.writer.QueryRowContext(t.Context(), query).Scan(&v))
	return v
}

func TestLocked(t *testing.T) {
	const short = 40 * time.Millisecond
	path := filepath.Join(t.TempDir(), "ledger.db")
	s, err := openWaiting(path, short)
	check.NoError(t, err)
	defer s.Close()
	other := raw(t, path)
	run(t, other, "BEGIN IMMEDIATE")
	begun := time.Now()
	err = s.Update(context.Background(), addEntry(1))
	refused(t, err, ErrLocked, path, "end the program")
	if waited := time.Since(begun); waited < short {
		t.Errorf("it waited for %v, want %v", waited, short)
	}
	if n := entries(t, s); n != 0 {
		t.Errorf("%d entries, want 0", n)
	}
	run(t, other, "ROLLBACK")
	if err := s.Update(context.Background(), addEntry(1)); err != nil {
		t.Errorf("nobody holds it any more: %v", err)
	}

	patient, err := Open(path)
	check.NoError(t, err)
	defer patient.Close()
	run(t, other, "BEGIN IMMEDIATE")
	ctx, stop := context.WithTimeout(context.Background(), short)
	defer stop()
	if err := patient.Update(ctx, addEntry(2)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Update = %v, want the context's error", err)
	}
	run(t, other, "ROLLBACK")
	if err := patient.Update(context.Background(), addEntry(2)); err != nil {
		t.Errorf("nobody holds it any more: %v", err)
	}
}

// TestContextEndsAtBegin: SQLite may have begun a transaction whose context ended at that moment. It must not stay open.
func TestContextEndsAtBegin(t *testing.T) {
	s := fresh(t)
	for range 2000 {
		ctx, end := context.WithCancel(t.Context())
		go end()
		if err := s.Update(ctx, func(ledger.Tx) error { return nil }); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
}

// TestCloseDuringView: a view that has begun reads on.
func TestCloseDuringView(t *testing.T) {
	s := fresh(t)
	check.NoError(t, s.Update(t.Context(), addEntry(1)))
	err := s.View(t.Context(), func(r ledger.Reader) error {
		_, err := r.End()
		err = errors.Join(err, s.Close())
		for _, broke := range r.Entries(0) {
			err = errors.Join(err, broke)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestNotALedger(t *testing.T) {
	folder := t.TempDir()
	text := filepath.Join(folder, "text.db")
	check.NoError(t, os.WriteFile(text, []byte(strings.Repeat("this is not a database. ", 400)), 0o600))
	foreign := filepath.Join(folder, "foreign.db")
	db := raw(t, foreign)
	run(t, db, "CREATE TABLE events (id INTEGER)")
	db.Close()
	check.NoError(t, os.Chmod(foreign, 0o600))
	for _, path := range []string{text, foreign} {
		before, err := os.ReadFile(path)
		check.NoError(t, err)
		_, err = Open(path)
		refused(t, err, ErrNotLedger, path, "name another")
		_, err = OpenReadOnly(path)
		refused(t, err, ErrNotLedger, path, "name another")
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			t.Errorf("%s was changed, %v", path, err)
		}
	}
	empty := filepath.Join(folder, "empty.db")
	check.NoError(t, os.WriteFile(empty, nil, 0o600))
	_, err := OpenReadOnly(empty)
	refused(t, err, ErrNotLedger, empty, "empty")
}

func TestDamaged(t *testing.T) {
	s := fresh(t)
	err := s.Update(context.Background(), func(tx ledger.Tx) error {
		for i := range int64(2000) {
			if err := addEntry(i + 1)(tx); err != nil {
				return err
			}
		}
		return nil
	})
	check.NoError(t, err)
	check.NoError(t, s.Close())
	content, err := os.ReadFile(s.path)
	check.NoError(t, err)
	const page = 4096
	for at := 48 * page; at < len(content); at += page { // behind the schema
		copy(content[at:], strings.Repeat("\xff", 64))
	}
	check.NoError(t, os.WriteFile(s.path, content, 0o600))
	s, err = Open(s.path)
	check.NoError(t, err)
	defer s.Close()
	err = s.View(context.Background(), func(r ledger.Reader) error {
		for _, err := range r.Entries(0) {
			if err != nil {
				return err
			}
		}
		return nil
	})
	refused(t, err, ErrNotLedger, s.path, "backup")
}

// TestRowsOfTheWrongType: a hand-made file is an error, not a panic.
func TestRowsOfTheWrongType(t *testing.T) {
	s := fresh(t)
	db := raw(t, s.path)
	run(t, db, "DROP TABLE tokens", "CREATE TABLE tokens (id, name, role, secret, created, expires, revoked, entry)",
		"INSERT INTO tokens VALUES ('a', 1, NULL, x'00', 2.5, '', '', 'many')",
		"DROP TABLE entries", "CREATE TABLE entries (idx, hashes)", "INSERT INTO entries VALUES (1, zeroblob(31)), (2, 'text')")
	err := s.View(context.Background(), func(r ledger.Reader) error { _, err := r.Token("a"); return err })
	refused(t, err, ErrNotLedger, "column 2", "text")
	check.NoError(t, s.Update(t.Context(), func(tx ledger.Tx) error { return tx.AddRun(runRow(ledger.Pending)) }))
	for _, tc := range []struct{ change, column, want string }{
		{"approvers = '{}'", "column 29", "JSON list"},
		{"approvers = '[]', bundle = zeroblob(31)", "column 17", "32 bytes"},
		{"bundle = zeroblob(32), expires = 1 << 60", "column 32", "a time in milliseconds"},
	} {
		run(t, db, "UPDATE runs SET "+tc.change)
		err = s.View(t.Context(), func(r ledger.Reader) error { _, err := r.Run(runID); return err })
		refused(t, err, ErrNotLedger, tc.column, tc.want)
	}
	for _, index := range []int64{1, 2} {
		err = s.View(context.Background(), func(r ledger.Reader) error {
			_, err := r.ReadHashes([]int64{tlog.StoredHashIndex(0, index)})
			return err
		})
		refused(t, err, ErrNotLedger, "column 1", "32 bytes")
	}
	err = s.View(context.Background(), func(r ledger.Reader) error { _, err := r.Blob(canonical.Digest("d")); return err })
	if !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("Blob = %v", err)
	}
}
