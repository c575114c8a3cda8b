//go:build unix

package main

import (
	"testing"

	"pgfsm/traces/ledger/postgres/pgtest"
)

// TestServeIdentityOnPostgres is [TestServeIdentity] on a database.
func TestServeIdentityOnPostgres(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	testServeIdentity(t, func(t *testing.T, name string) string {
		t.Helper()
		if err := c.Exec(t.Context(), "postgres", "CREATE DATABASE "+name); err != nil {
			t.Fatal(err)
		}
		if err := c.Ledger(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		return c.URL("pgfsm_serve", name)
	})
}
