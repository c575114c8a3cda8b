//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/postgres/pgtest"
)

// TestVacuumFullLeavesNothing: what was pruned is in the database's files until VACUUM FULL, and nowhere afterwards.
func TestVacuumFullLeavesNothing(t *testing.T) {
	c, name := shared.Database(t)
	s := openStore(t, c.URL(prunes, name))
	text := strings.Repeat("needle ", 40) // too short to be compressed
	row := runRow("ann")
	row.Args = `{"q":"` + text + `"}`
	blob := ledger.Blob{Digest: canonical.Sum("blob", []byte(text)), Kind: "blob", Text: `{"q":"` + text + `"}`}
	check.NoError(t, s.Update(t.Context(), func(tx ledger.Tx) error {
		e := ledger.Entry{Index: 0, At: early, Type: ledger.MCPPassed, Body: []byte(row.Args)}
		return errors.Join(tx.AddEntry(e, []tlog.Hash{tlog.RecordHash(e.Leaf())}), tx.AddRun(row), tx.PutBlob(blob))
	}))
	conn, err := pgx.Connect(t.Context(), c.URL(pgtest.Superuser, name))
	check.NoError(t, err)
	defer conn.Close(context.Background())
	found := func() (n int) {
		t.Helper()
		_, err := conn.Exec(t.Context(), "CHECKPOINT")
		check.NoError(t, err)
		var data string
		var oid uint32
		check.NoError(t, conn.QueryRow(t.Context(), "SELECT current_setting('data_directory'), oid FROM pg_database WHERE datname = current_database()").Scan(&data, &oid))
		files, err := filepath.Glob(filepath.Join(data, "base", fmt.Sprint(oid), "*"))
		check.NoError(t, err)
		for _, file := range files {
			if content, err := os.ReadFile(file); err == nil { // a dropped file may go meanwhile
				n += bytes.Count(content, []byte("needle"))
			}
		}
		return n
	}
	if found() == 0 {
		t.Fatal("the needle is nowhere before the prune: the test is blind")
	}
	check.NoError(t, s.Update(t.Context(), func(tx ledger.Tx) error {
		return tx.Prune([]ledger.PrunedEntry{{Index: 0, Header: []byte(`{}`)}}, []string{row.RunID}, []canonical.Digest{blob.Digest})
	}))
	if found() == 0 {
		t.Log("a vacuum came before VACUUM FULL")
	}
	for _, table := range []string{"entries", "runs", "blobs", "deliveries", "told"} {
		_, err := conn.Exec(t.Context(), "VACUUM FULL "+table)
		check.NoError(t, err)
	}
	if n := found(); n != 0 {
		t.Errorf("after VACUUM FULL %d places of the files have it", n)
	}
}
