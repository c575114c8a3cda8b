//go:build unix

package postgres_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/postgres"
	"pgfsm/traces/ledger/postgres/pgtest"
)

// TestUnsafeDatabases: a store does not connect to a database that can lose what it acknowledges, or that is no ledger of this version.
func TestUnsafeDatabases(t *testing.T) {
	c, db := shared.Database(t)
	role := "ALTER ROLE pgfsm_serve IN DATABASE " + db + " SET "
	for _, tc := range []struct {
		name, before, after, says string
		want                      error
	}{
		{"asynchronous-commit", role + "synchronous_commit = off", role + "synchronous_commit = on", "synchronous_commit is off", postgres.ErrUnsafe},
		{"local-commit", role + "synchronous_commit = local", role + "synchronous_commit = on", "synchronous_commit is local", postgres.ErrUnsafe},
		{"remote-write", role + "synchronous_commit = remote_write", role + "synchronous_commit = on", "remote_write", postgres.ErrUnsafe},
		{"remote-apply", role + "synchronous_commit = remote_apply", role + "synchronous_commit = on", "", nil},
		{"read-only", role + "default_transaction_read_only = on", role + "default_transaction_read_only = off", "read-only", ledger.ErrReadOnly},
		{"bytes-as-escapes", role + "bytea_output = escape", role + "bytea_output = hex", "set it to hex", postgres.ErrUnreadable},
		{"newer", "UPDATE pgfsm_version SET version_id = 9 WHERE version_id = 1", "UPDATE pgfsm_version SET version_id = 1 WHERE version_id = 9",
			"run pgfsm ledger init", ledger.ErrSchema},
		{"no-ledger", "ALTER TABLE pgfsm_version RENAME TO other", "ALTER TABLE other RENAME TO pgfsm_version", "run pgfsm ledger init", ledger.ErrSchema},
		{"migration-failed", "UPDATE pgfsm_version SET version_id = 0 WHERE version_id = 1", "UPDATE pgfsm_version SET version_id = 1 WHERE id = 2",
			"run pgfsm ledger init", ledger.ErrSchema},
		{"other-column", "ALTER TABLE pgfsm_version RENAME version_id TO n", "ALTER TABLE pgfsm_version RENAME n TO version_id",
			`column "version_id" does not exist`, ledger.ErrSchema},
		{"no-right", "REVOKE SELECT ON pgfsm_version FROM pgfsm_serve", "GRANT SELECT ON pgfsm_version TO pgfsm_serve",
			"permission denied for table pgfsm_version: run pgfsm ledger init", ledger.ErrUnavailable},
		{"no-login", "ALTER ROLE pgfsm_serve NOLOGIN", "ALTER ROLE pgfsm_serve LOGIN", "not permitted to log in", ledger.ErrUnavailable},
		{"as-it-was", "SELECT 1", "SELECT 1", "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			check.NoError(t, c.Exec(t.Context(), db, tc.before))
			s, err := postgres.Open(c.URL(serves, db))
			if !errors.Is(err, tc.want) || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Open() = %v, want %v, %q", err, tc.want, tc.says)
			}
			if err == nil {
				s.Close()
			}
			check.NoError(t, c.Exec(t.Context(), db, tc.after))
		})
	}
}

// TestTablesOfOthers: pgfsm changes no tables of other programs, and takes none for its own.
func TestTablesOfOthers(t *testing.T) {
	c, _ := shared.Database(t)
	for name, tc := range map[string]struct{ before, says string }{ // in any order
		"another_program_with_goose": {"CREATE TABLE goose_db_version (id serial, version_id bigint, is_applied boolean, tstamp timestamp); " +
			"INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, true), (1, true)", ""},
		"a_table":  {"CREATE TABLE runs (n bigint)", `"runs" already exists, and is not one of pgfsm: use another schema`},
		"an_index": {"CREATE TABLE t (n bigint); CREATE INDEX runs_task ON t (n)", `"runs_task" already exists`},
		"a_view":   {"CREATE VIEW log AS SELECT 1", `"log" already exists`},
		"versions": {"CREATE TABLE pgfsm_version (n bigint)", `column "version_id" does not exist`},
	} {
		t.Run(name, func(t *testing.T) {
			check.NoError(t, c.Exec(t.Context(), "postgres", "CREATE DATABASE "+name))
			check.NoError(t, c.Exec(t.Context(), name, tc.before))
			_, err := postgres.Migrate(t.Context(), c.URL(pgtest.Superuser, name))
			if tc.says == "" && err != nil || tc.says != "" && (!errors.Is(err, ledger.ErrSchema) || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("Migrate() = %v, want %q", err, tc.says)
			}
			s, err := postgres.Open(c.URL(pgtest.Superuser, name))
			if tc.says != "" {
				if !errors.Is(err, ledger.ErrSchema) {
					t.Errorf("Open() = %v, want ErrSchema", err)
				}
				return
			}
			check.NoError(t, err)
			if err := errors.Join(s.Update(t.Context(), addEntry(0)), s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestASessionThatBecomesUnsafe: a pooler may run a transaction on a session with other settings.
func TestASessionThatBecomesUnsafe(t *testing.T) {
	c := pgtest.Start(t)
	check.NoError(t, c.Exec(t.Context(), "postgres", "CREATE DATABASE pgfsm"))
	check.NoError(t, c.Ledger(t.Context(), "pgfsm"))
	s := openStore(t, c.URL(serves, "pgfsm"))
	c.Set(t, "synchronous_commit", "off") // for sessions that are there, too
	for range 2 {
		if err := s.Update(t.Context(), addEntry(0)); !errors.Is(err, postgres.ErrUnsafe) {
			t.Errorf("Update() = %v, want ErrUnsafe", err)
		}
	}
	c.Set(t, "synchronous_commit", "on")
	if err := s.Update(t.Context(), addEntry(0)); err != nil {
		t.Errorf("Update() = %v", err)
	}
	c.Set(t, "fsync", "off")
	if _, err := postgres.Open(c.URL(serves, "pgfsm")); !errors.Is(err, postgres.ErrUnsafe) {
		t.Errorf("Open() = %v, want ErrUnsafe", err)
	}
}

// TestLostEntries: a store whose last acknowledged entry is gone, or another one, is of no use any more.
func TestLostEntries(t *testing.T) {
	for name, damage := range map[string]string{ // in any order
		"older-copy":     "DELETE FROM entries WHERE idx = 1; UPDATE log SET size = 1",
		"another-branch": "UPDATE entries SET hashes = decode(repeat('ab', 32), 'hex') WHERE idx = 1",
	} {
		t.Run(name, func(t *testing.T) {
			c, db := shared.Database(t)
			writer, reader := openStore(t, c.URL(serves, db)), openStore(t, c.URL(serves, db))
			for i := range int64(2) {
				for _, s := range []*postgres.Store{writer, reader} {
					if i == 1 || s == writer {
						check.NoError(t, s.Update(t.Context(), addEntry(size(t, s))))
					}
				}
			}
			check.NoError(t, c.Exec(t.Context(), db, strings.ReplaceAll(damage, "idx = 1", "idx >= 1")))
			if err := writer.Update(t.Context(), addEntry(3)); !errors.Is(err, ledger.ErrLost) {
				t.Errorf("Update() = %v, want ErrLost", err)
			}
			cut := "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + db + "' AND pid <> pg_backend_pid()"
			check.NoError(t, c.Exec(t.Context(), db, cut))
			for _, s := range []*postgres.Store{writer, reader} { // the reader notices with a new connection
				var err error
				for range 9 { // the first ones may find that they have lost a connection
					err = s.View(t.Context(), func(r ledger.Reader) error { _, err := r.End(); return err })
				}
				if !errors.Is(err, ledger.ErrLost) {
					t.Errorf("View() = %v, want ErrLost", err)
				}
				if _, err := s.OwnerGone(t.Context(), "01a20937-927b-7666-a7a9-3a3ce7bb963b"); !errors.Is(err, ledger.ErrLost) {
					t.Errorf("Gone() = %v, want ErrLost", err)
				}
			}
		})
	}
}

// TestAHostThatDoesNotAnswer: the next host of the URL is tried before the time for an answer is over.
func TestAHostThatDoesNotAnswer(t *testing.T) {
	c, db := shared.Database(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	check.NoError(t, err)
	defer silent.Close()
	url := strings.Replace(c.URL(serves, db), "@", "@"+silent.Addr().String()+",", 1)
	s, _ := owned(t, url+"&lease="+lease.String())
	if err := s.Update(t.Context(), addEntry(0)); err != nil {
		t.Error(err)
	}
}
