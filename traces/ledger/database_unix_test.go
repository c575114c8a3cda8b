//go:build unix

package ledger_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"pgfsm/traces/ledger/postgres"
	"pgfsm/traces/ledger/postgres/pgtest"
)

// storeVariable is set to postgres where the tests run with PostgreSQL, and not in memory or in files.
const storeVariable = "PGFSM_TEST_STORE"

var databases = pgtest.Shared{Prepare: func(url string) error {
	ctx := context.Background()
	roles, err := postgres.Migrate(ctx, url)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, roles)
	return errors.Join(err, conn.Close(ctx))
}}

func TestMain(m *testing.M) { os.Exit(databases.Main(m)) }

// newDatabase makes a database and leads the pruning role to it. It is empty if the tests do not run with PostgreSQL.
func newDatabase(tb testing.TB) string {
	tb.Helper()
	if os.Getenv(storeVariable) != "postgres" {
		return ""
	}
	c, name := databases.Database(tb)
	return c.URL("pgfsm_prune", name)
}
