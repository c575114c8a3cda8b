package e2e

import (
	"os"
	"testing"

	"pgfsm/traces/ledger/postgres/pgtest"
)

// cluster has a database with a ledger for each test that wants one.
var cluster pgtest.Shared

// onPostgres reports whether the tests of ledgers run with PostgreSQL, as make test-postgres has them.
func onPostgres() bool { return os.Getenv("PGFSM_TEST_STORE") == "postgres" }

// needsPostgres is for tests of what only a database does.
func needsPostgres(t *testing.T) {
	t.Helper()
	if !onPostgres() {
		t.Skip("make test-postgres runs this")
	}
	pgtest.Find(t)
}

// newLedger returns the URL of a new ledger: in the gateway's folder, or in a database.
func newLedger(t *testing.T) string {
	t.Helper()
	if onPostgres() {
		return cluster.URL(t) + "&lease=3s"
	}
	return inFile
}
