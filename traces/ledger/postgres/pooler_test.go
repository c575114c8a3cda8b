//go:build unix

package postgres_test

import (
	"testing"

	"pgfsm/traces/ledger/postgres/pgtest"
	"pgfsm/traces/ledger/storetest"
)

// TestStoreThroughAPooler: a store works through a pooler that runs each transaction on another connection.
func TestStoreThroughAPooler(t *testing.T) {
	address := shared.Cluster(t).Pooler(t, serves, prunes)
	storetest.Run(t, harness(func(t testing.TB) string {
		_, name := shared.Database(t)
		return pgtest.URL(address, prunes, name) + "&lease=" + lease.String()
	}))
}
