package e2e

import (
	"os"
	"testing"

	"pgfsm/traces/ledger/postgres/pgtest"
)

// cluster has a database with a ledger for each test that wants one.
var cluster pgtest.Shared

// onPostgres is for tests that need PostgreSQL: they repeat tests of other stores, or wait for the database, so that make test-postgres runs them.
func onPostgres(t *testing.T) {
	t.Helper()
	if os.Getenv("PGFSM_TEST_STORE") != "postgres" {
		t.Skip("make test-postgres runs this")
	}
	pgtest.Find(t)
}
