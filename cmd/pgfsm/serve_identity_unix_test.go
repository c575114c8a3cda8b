//go:build unix

package main

import (
	"sync"
	"testing"

	"pgfsm/traces/ledger/postgres/pgtest"
)

// TestServeIdentityOnPostgres is [TestServeIdentity] on a database.
func TestServeIdentityOnPostgres(t *testing.T) {
	t.Parallel()
	testServeIdentity(t, databases(t))
}

// TestCredentialsStayOutOnPostgres is [TestCredentialsStayOut] on a database.
func TestCredentialsStayOutOnPostgres(t *testing.T) {
	t.Parallel()
	testCredentialsStayOut(t, databases(t))
}

// TestCorpusRepeatsCredentialsOnPostgres is [TestCorpusRepeatsCredentials] on a database.
func TestCorpusRepeatsCredentialsOnPostgres(t *testing.T) {
	t.Parallel()
	testCorpusRepeatsCredentials(t, databases(t)(t, "corpus"))
}

// databases makes a database with the tables of a ledger for each name.
func databases(t *testing.T) func(t *testing.T, name string) string {
	t.Helper()
	c := pgtest.Start(t)
	var mu sync.Mutex // a ledger's roles are those of all databases
	return func(t *testing.T, name string) string {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if err := c.Exec(t.Context(), "postgres", "CREATE DATABASE "+name); err != nil {
			t.Fatal(err)
		}
		if err := c.Ledger(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		return c.URL("pgfsm_serve", name)
	}
}
