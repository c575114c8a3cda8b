//go:build unix

package ledger_test

import (
	"os"
	"testing"

	"pgfsm/traces/ledger/postgres/pgtest"
)

// storeVariable is set to postgres where the tests run with PostgreSQL, and not in memory or in files.
const storeVariable = "PGFSM_TEST_STORE"

var databases pgtest.Shared

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
