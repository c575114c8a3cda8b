//go:build unix

package postgres_test

import (
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/postgres"
	"pgfsm/traces/ledger/postgres/pgtest"
	"pgfsm/traces/ledger/storetest"
)

// TestStoreThroughAPooler: a store works through a pooler that runs each transaction on another connection.
func TestStoreThroughAPooler(t *testing.T) {
	address := shared.Cluster(t).Pooler(t, serves, prunes)
	storetest.Run(t, storetest.Harness{
		New: func(t testing.TB) string {
			_, name := shared.Database(t)
			return pgtest.URL(address, prunes, name) + "&lease=" + lease.String()
		},
		Open: func(t testing.TB, url string) ledger.Store {
			s, err := postgres.Open(url)
			check.NoError(t, err)
			return s
		},
	})
}
