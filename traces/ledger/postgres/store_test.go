package postgres_test

import (
	"context"
	"os"
	"testing"
	"time"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/postgres"
	"pgfsm/traces/ledger/postgres/pgtest"
	"pgfsm/traces/ledger/storetest"
)

// shared has a database with a ledger for each test.
var shared = pgtest.Shared{Prepare: func(url string) error {
	_, err := postgres.Migrate(context.Background(), url)
	return err
}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// lease is that of the tests: long enough for a slow machine.
const lease = 3 * time.Second

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Processes: true, Lease: lease,
		New: func(t testing.TB) string { return shared.URL(t) + "&lease=" + lease.String() },
		Open: func(t testing.TB, url string) ledger.Store {
			s, err := postgres.Open(url)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	})
}
