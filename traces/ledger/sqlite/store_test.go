package sqlite_test

import (
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlite"
	"pgfsm/traces/ledger/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Harness{Open: func(t testing.TB, path string) ledger.Store {
		s, err := sqlite.Open(path, sqlite.Options{})
		check.NoError(t, err)
		return s
	}})
}
