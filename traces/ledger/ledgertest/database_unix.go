//go:build unix

package ledgertest

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"pgfsm/traces/ledger/postgres/pgtest"
)

// storeVariable is set to postgres if the tests run with PostgreSQL instead of SQLite.
const storeVariable = "PGFSM_TEST_STORE"

var databases pgtest.Shared

// Main runs a package's tests, and stops PostgreSQL if they ran with it. It is for TestMain, which passes its result to os.Exit.
func Main(m *testing.M) int { return databases.Main(m) }

// newDatabase makes a database and returns its URL for the pruning role. The URL is empty if the tests do not run with PostgreSQL.
func newDatabase(tb testing.TB) string {
	tb.Helper()
	if os.Getenv(storeVariable) != "postgres" {
		return ""
	}
	c, name := databases.Database(tb)
	return c.URL("pgfsm_prune", name)
}

// endLeases ends the leases of owners whose process is gone, so that tests do not wait for them to run out.
func endLeases(url string, owners []string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "UPDATE replicas SET until = clock_timestamp() - interval '1 second' WHERE owner = ANY($1)", owners)
	return errors.Join(err, conn.Close(ctx))
}
