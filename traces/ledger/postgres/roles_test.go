//go:build unix

package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/postgres"
	"pgfsm/traces/ledger/postgres/pgtest"
)

const codeNoPrivilege = "42501"

// TestRoles shows that PostgreSQL itself refuses the serving role what changes or removes the record, and the pruning role what changes its hashes.
func TestRoles(t *testing.T) {
	c, name := shared.Database(t)
	s := openStore(t, c.URL(serves, name))
	if err := s.Update(t.Context(), func(tx ledger.Tx) error {
		return errors.Join(addEntry(0)(tx), tx.AddRun(runRow("ann")), tx.PutBlob(ledger.Blob{Digest: "d"}),
			tx.PutToken(ledger.Token{ID: "k"}), tx.PutDelivery(ledger.Delivery{State: "waiting"}), tx.SetNextDelivery("h", 1))
	}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		role, statement string
		may             bool
	}{
		{serves, "UPDATE entries SET body = '{}'", false},
		{serves, "UPDATE entries SET run = NULL, body = NULL, header = '{}' WHERE idx = 0", false},
		{serves, "UPDATE entries SET at = at", false},
		{serves, "DELETE FROM entries", false},
		{serves, "TRUNCATE entries", false},
		{serves, "INSERT INTO entries SELECT * FROM entries ON CONFLICT (idx) DO UPDATE SET body = '{}'", false},
		{serves, "ALTER TABLE entries ADD COLUMN more text", false},
		{serves, "DROP TABLE entries", false},
		{serves, "CREATE RULE r AS ON INSERT TO entries DO INSTEAD NOTHING", false},
		{serves, "CREATE TABLE more (n bigint)", false},
		{serves, "UPDATE blobs SET text = ''", false},
		{serves, "DELETE FROM blobs", false},
		{serves, "DELETE FROM runs", false},
		{serves, "DELETE FROM tokens", false},
		{serves, "DELETE FROM log", false},
		{serves, "INSERT INTO log (size, at, type) VALUES (1, '', '')", false},
		{serves, "UPDATE pgfsm_version SET version_id = 2", false},
		{prunes, "UPDATE entries SET idx = 7", false},
		{prunes, "UPDATE entries SET hashes = hashes", false},
		{prunes, "UPDATE entries SET at = at, n = n, previous = previous, type = type", false},
		{prunes, "DELETE FROM entries", false},
		{prunes, "TRUNCATE runs", false},
		{prunes, "DROP TABLE runs", false},
		{prunes, "UPDATE entries SET run = NULL, body = NULL, header = '{}' WHERE idx = 0", true},
		{prunes, "DELETE FROM blobs", true},
		{prunes, "DELETE FROM runs", true},
		{serves, "SELECT * FROM requests, events, decisions", true},
		{"pgfsm_migrate", "ALTER TABLE entries ADD COLUMN more text", true},
	} {
		conn, err := pgx.Connect(t.Context(), c.URL(tc.role, name))
		check.NoError(t, err)
		_, err = conn.Exec(t.Context(), tc.statement)
		var coded *pgconn.PgError
		refused := errors.As(err, &coded) && coded.Code == codeNoPrivilege
		if tc.may && err != nil || !tc.may && !refused {
			t.Errorf("%s as %s: %v, allowed is %t", tc.statement, tc.role, err, tc.may)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestMigrateAsItsRole: a ledger stays as it is when it is migrated again, by the role that is made for it.
func TestMigrateAsItsRole(t *testing.T) {
	c, name := shared.Database(t)
	roles, err := postgres.Migrate(t.Context(), c.URL("pgfsm_migrate", name))
	if err != nil || !strings.Contains(roles, `ON SCHEMA "public" TO pgfsm_serve`) {
		t.Fatalf("Migrate() = %s, %v", roles, err)
	}
	if err := c.Exec(t.Context(), name, roles); err != nil {
		t.Errorf("the roles cannot be made again: %v", err)
	}
	openStore(t, c.URL(serves, name))
}

// TestRolesFindTheirSchema: a ledger may be in another schema than public; the printed statements lead the roles to it.
func TestRolesFindTheirSchema(t *testing.T) {
	c, name := shared.Database(t)
	setup := `DROP SCHEMA public CASCADE; CREATE SCHEMA "Gate way"; ALTER DATABASE ` + name + ` SET search_path = nowhere;
		ALTER ROLE ` + pgtest.Superuser + ` IN DATABASE ` + name + ` SET search_path = "Gate way"`
	check.NoError(t, c.Exec(t.Context(), name, setup))
	check.NoError(t, c.Ledger(t.Context(), name))
	if err := openStore(t, c.URL(serves, name)).Update(t.Context(), addEntry(0)); err != nil {
		t.Error(err)
	}
	if _, err := postgres.Migrate(t.Context(), c.URL("pgfsm_migrate", name)); err != nil {
		t.Error(err)
	}
}

// addEntry adds an entry of no run.
func addEntry(index int64) func(ledger.Tx) error {
	return func(tx ledger.Tx) error {
		e := ledger.Entry{Index: index, At: early, Type: ledger.BundleActivated, Body: []byte("{}")}
		return tx.AddEntry(e, []tlog.Hash{tlog.RecordHash(e.Leaf())})
	}
}

const (
	early = "2026-01-01T00:00:00.000Z"
	runID = "01a20937-927b-7666-a7a9-3a3ce7bb963b"
)

// runRow returns the row of a run of an actor with what every row has.
func runRow(actor string) ledger.RunRow {
	return ledger.RunRow{RunID: runID, At: early, Updated: early, Bundle: canonical.Sum("test"), Actor: actor}
}
