package ledger_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlite"
)

// TestRebuild damages rows of projections, names them all, rebuilds them, and verifies.
func TestRebuild(t *testing.T) {
	b := openRaw(t, archive(t))
	first := b.texts(t, "SELECT min(run_id) FROM requests")[0]
	last := b.texts(t, "SELECT max(run_id) FROM requests")[0]
	token := b.texts(t, "SELECT max(id) FROM tokens")[0]
	const foreign = "00000000-0000-7000-8000-000000000000"
	const row = "WHERE first = (SELECT first FROM requests WHERE run_id = ?)"
	b.do(t, `CREATE TEMP TABLE r AS SELECT * FROM runs LIMIT 1;
		UPDATE r SET first = 1000000, run = x'00000000000070008000000000000000'; INSERT INTO runs SELECT * FROM r; DROP TABLE r`)
	b.do(t, "UPDATE runs SET actor = 'mallory' "+row, first)
	b.do(t, "DELETE FROM runs "+row, last)
	b.do(t, "UPDATE tokens SET role = 'admin', entry = 1 WHERE id = ?", token)
	b.do(t, "INSERT INTO tokens SELECT 'zzzz', name, 'admin', secret, created, '', '', 1 FROM tokens LIMIT 1")
	var found []string
	names := func(all []ledger.Fault) {
		for _, f := range all {
			found = append(found, f.Table+" "+f.Key)
		}
		slices.Sort(found)
	}
	want := []string{"requests " + foreign, "requests " + first, "requests " + last, "tokens " + token, "tokens zzzz"}
	slices.Sort(want)
	skeletonOf(t, b.path, func(r ledger.Reader) error {
		all, err := ledger.Rebuild(context.Background(), r, nil)
		names(all)
		return err
	})
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("what differs (-want +got):\n%s", diff)
	}
	if _, err := verify(t, b.path, ledger.VerifyOptions{}); err == nil {
		t.Error("a check mended the ledger")
	}
	store, err := sqlite.Open(b.path)
	check.NoError(t, err)
	found = nil
	err = store.Update(context.Background(), func(tx ledger.Tx) error {
		all, err := ledger.Rebuild(context.Background(), tx, tx)
		names(all)
		return err
	})
	if err != nil || !cmp.Equal(want, found) {
		t.Errorf("Rebuild() = %q, %v", found, err)
	}
	check.NoError(t, store.Close())
	if _, err := verify(t, b.path, ledger.VerifyOptions{}); err != nil {
		t.Errorf("the ledger that was rebuilt: Verify() = %v", err)
	}
}
