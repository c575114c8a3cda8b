//go:build unix

package postgres_test

import (
	"os"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/postgres"
	"pgfsm/traces/ledger/postgres/pgtest"
	"pgfsm/traces/ledger/storetest"
)

// shared has a database with a ledger and its roles for each test.
var shared pgtest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// The roles of a ledger.
const (
	serves = "pgfsm_serve"
	prunes = "pgfsm_prune"
)

// lease is that of the tests: long enough for a slow machine.
const lease = 9 * time.Second

// fresh makes a database for a test and returns the URL that leads a role to it.
func fresh(t testing.TB, role string) string {
	t.Helper()
	c, name := shared.Database(t)
	return c.URL(role, name) + "&lease=" + lease.String()
}

func openStore(t testing.TB, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(url)
	check.NoError(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		New: func(t testing.TB) string { return fresh(t, prunes) },
		Open: func(t testing.TB, url string) ledger.Store {
			s, err := postgres.Open(url)
			check.NoError(t, err)
			return s
		},
	})
}
