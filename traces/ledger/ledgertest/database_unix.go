//go:build unix

package ledgertest

import (
	"os"
	"testing"

	"pgfsm/traces/ledger/postgres/pgtest"
)

// storeVariable is set to postgres where the tests run with PostgreSQL, and not in memory or in files.
const storeVariable = "PGFSM_TEST_STORE"

var databases pgtest.Shared

// Main runs a package's tests, and stops PostgreSQL if they ran with it. It is for TestMain, which passes its result to os.Exit.
func Main(m *testing.M) int { return databases.Main(m) }

// newDatabase makes a database and leads the pruning role to it. It is empty if the tests do not run with PostgreSQL.
func newDatabase(tb testing.TB) string {
	tb.Helper()
	if os.Getenv(storeVariable) != "postgres" {
		return ""
	}
	c, name := databases.Database(tb)
	return c.URL("pgfsm_prune", name)
}
