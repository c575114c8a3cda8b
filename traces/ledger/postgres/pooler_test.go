//go:build unix

package postgres_test

import (
	"sync"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/postgres"
	"pgfsm/traces/ledger/postgres/pgtest"
	"pgfsm/traces/ledger/storetest"
)

// TestStoreThroughAPooler: a store works through a pooler that runs each transaction on another connection.
func TestStoreThroughAPooler(t *testing.T) {
	pgtest.Find(t)
	pgtest.FindPooler(t) // t.Skip panics within OnceValue
	// The processes that storetest starts are given the URL, and need no pooler of their own.
	address := sync.OnceValue(func() string { return shared.Cluster(t).Pooler(t, serves, prunes) })
	storetest.Run(t, storetest.Harness{
		Processes: true, Lease: lease,
		New: func(t testing.TB) string {
			_, name := shared.Database(t)
			return pgtest.URL(address(), prunes, name) + "&lease=" + lease.String()
		},
		Open: func(t testing.TB, url string) ledger.Store {
			s, err := postgres.Open(url)
			check.NoError(t, err)
			return s
		},
	})
}
