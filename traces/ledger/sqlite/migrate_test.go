package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/traces/ledger"
)

func TestSchemaVersionIsTheLastMigration(t *testing.T) {
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	last := files[len(files)-1].Name()
	if want := "0000" + format(schemaVersion) + "_"; !strings.HasPrefix(last, want) || len(files) != schemaVersion {
		t.Errorf("%d migrations, the last is %s, want %s", len(files), last, want)
	}
}

// older makes a file as each earlier version left it, with a run in it.
func older(t *testing.T, version int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := os.WriteFile(path, nil, fileMode); err != nil {
		t.Fatal(err)
	}
	w, err := dial(context.Background(), path, BusyTimeout, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := logAhead(context.Background(), w); err != nil {
		t.Fatal(err)
	}
	if err := migrate(context.Background(), path, BusyTimeout, version); err != nil {
		t.Fatal(err)
	}
	tx := &tx{c: w, ctx: context.Background(), path: path}
	for _, err := range []error{
		tx.one("INSERT INTO events (" + oldEventColumns + ") VALUES (1, 'a', 'request.created', '', '', '{}', '', '', '')"),
		tx.one("INSERT INTO steps (" + oldStepColumns + ") VALUES ('a', 0, '', '', '', '', '{}', '', '', '', '')"), putOldRequest(tx),
		tx.PutBlob(ledger.Blob{Digest: "d", Text: "text"}), tx.PutToken(ledger.Token{ID: "k"}), w.close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// The columns that the first version had.
const (
	oldEventColumns = "seq, run_id, type, at, by, payload, prev, run_prev, hash"
	oldStepColumns  = `run_id, seq, at, from_state, "trigger", to_state, facts, command, event, prev, hash`
)

// putOldRequest writes a request with the columns that the first version had.
func putOldRequest(t *tx) error {
	const columns = "run_id, at, updated, kind, status, state, actor, task, env, server, tool, args, arguments, definition, bundle, " +
		"mode, score, policy, code, reason, binding, approvers, quorum, agreed, expires, owner, sent, ended, steps, head, seq, hash"
	return t.one("INSERT INTO requests (" + columns + ") VALUES ('a', '', '', 'agent', 'pending', '', 'ann', '', '', 'files', 'read', '{}', " +
		"'sha256:1', '', '', '', 0, '', '', '', 'held', '[\"x\"]', 0, 0, '', '', '', '', 0, '', 0, '')")
}

func TestOlderFilesAreBroughtUpToDate(t *testing.T) {
	for version := int64(1); version < schemaVersion; version++ {
		t.Run(format(version), func(t *testing.T) {
			path := older(t, version)
			_, err := OpenReadOnly(path)
			refused(t, err, ErrOlder, path, "up to date")
			s, err := Open(path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if n := events(t, s); n != 1 {
				t.Errorf("%d events, want 1", n)
			}
			err = s.Update(context.Background(), func(tx ledger.Tx) error {
				q, err := tx.Request("a")
				if err != nil || len(q.Approvers) != 1 {
					t.Errorf("the request is %v, %v", q, err)
				}
				look := ledger.Look{Actor: "ann", Server: "files", Tool: "read", Arguments: "sha256:1"}
				if run, err := tx.Waiting(look); run != "a" || err != nil || q.Delivered != "" {
					t.Errorf("%q waits, %v, and the request was delivered at %q", run, err, q.Delivered)
				}
				q.Delivered = "now"
				if err := tx.PutRequest(q); err != nil {
					return err
				}
				if run, err := tx.Waiting(look); !errors.Is(err, ledger.ErrNotFound) {
					t.Errorf("%q waits, %v, when it was delivered", run, err)
				}
				if b, err := tx.Blob("d"); err != nil || b.Text != "text" {
					t.Errorf("the blob is %v, %v", b, err)
				}
				if err := addEvent(2)(tx); err != nil {
					return err
				}
				steps := chainedSteps("a", 1, 3)
				if err := tx.AddSteps(steps); err != nil {
					return err
				}
				old := ledger.Step{RunID: "a", Facts: "{}"}
				if diff := cmp.Diff(append([]ledger.Step{old}, steps...), listed(t, tx.Steps("a"))); diff != "" {
					t.Errorf("the steps (-want +got):\n%s", diff)
				}
				return tx.PutDelivery(ledger.Delivery{Seq: 1, Hook: "h", State: "waiting"})
			})
			if err != nil {
				t.Error(err)
			}
			if _, err := raw(t, path).Exec("DELETE FROM events"); err == nil {
				t.Error("the triggers are gone")
			}
		})
	}
}

// TestHalfMigrated: a process that ended while it migrated left whole migrations only.
func TestHalfMigrated(t *testing.T) {
	path := older(t, 1)
	run(t, raw(t, path), "CREATE TABLE deliveries (seq)") // so that 00002 fails
	_, err := Open(path, Options{})
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Fatalf("Open = %v, want an error about %s", err, path)
	}
	run(t, raw(t, path), "DROP TABLE deliveries")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

func TestNewer(t *testing.T) {
	s := fresh(t)
	run(t, raw(t, s.path), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)")
	_, err := Open(s.path, Options{})
	refused(t, err, ErrNewer, s.path, "99")
	_, err = OpenReadOnly(s.path)
	refused(t, err, ErrNewer, s.path, "99")
}

// TestOpenedAtOnce: many make the same file.
func TestOpenedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	var group sync.WaitGroup
	var mu sync.Mutex
	next := int64(0)
	for range 8 {
		group.Go(func() {
			s, err := Open(path, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			mu.Lock()
			defer mu.Unlock()
			next++
			if err := s.Update(context.Background(), addEvent(next)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n := events(t, s); n != 8 {
		t.Errorf("%d events, want 8", n)
	}
	n, err := s.writer.number("SELECT count(*) FROM goose_db_version WHERE version_id > 0")
	if err != nil || n != schemaVersion {
		t.Errorf("%d migrations were run, %v, want %d", n, err, schemaVersion)
	}
}
