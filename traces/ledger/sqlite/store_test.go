package sqlite_test

import (
	"os/exec"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/tool"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlite"
	"pgfsm/traces/ledger/sqlite/sqlitetest"
	"pgfsm/traces/ledger/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Harness{Open: openFile, Query: sqlitetest.Query})
}

func openFile(t testing.TB, path string) ledger.Store {
	t.Helper()
	s, err := sqlite.Open(path)
	check.NoError(t, err)
	return s
}

// TestViewsInTheShell: SQLite's own program shows people the same, also in the version that Debian 12 has.
func TestViewsInTheShell(t *testing.T) {
	shell := tool.Path(t, "sqlite3", "sqlite3")
	storetest.Views(t, storetest.Harness{Open: openFile, Query: func(t testing.TB, path, query string) (rows [][]string) {
		t.Helper()
		out, err := exec.Command(shell, "-batch", "-readonly", "-header", "-nullvalue", "NULL", "-separator", "\x1f", "-newline", "\x1e", path, query).Output()
		check.NoError(t, err)
		for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x1e"), "\x1e") {
			rows = append(rows, strings.Split(line, "\x1f"))
		}
		return rows
	}})
}
