package ledger_test

import (
	"errors"
	"strconv"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/traces/ledger"
)

// TestVerifyNamesHashes changes and removes hashes of the tree, leaves and inner ones. The fault names the entry that completes the hash.
func TestVerifyNamesHashes(t *testing.T) {
	b := newBench(t, archive(t))
	stride := every(t)
	for i, id := range b.texts(t, "SELECT id FROM tree ORDER BY id") {
		if i%stride > 2 { // two that follow each other are of two levels now and then
			continue
		}
		for _, c := range []struct{ how, change, back string }{
			{"changed", "UPDATE tree SET hash = randomblob(32) WHERE id = ?", "UPDATE tree SET hash = (SELECT hash FROM kept) WHERE id = ?"},
			{"removed", "DELETE FROM tree WHERE id = ?", "INSERT INTO tree SELECT id, hash FROM kept WHERE id = ?"},
		} {
			b.do(t, "CREATE TEMP TABLE kept AS SELECT id, hash FROM tree WHERE id = ?", id)
			b.do(t, c.change, id)
			_, err := verify(t, b.path, ledger.VerifyOptions{})
			var fault *ledger.Fault
			if !errors.As(err, &fault) || fault.Key != completes(t, id) || fault.Table != "tree" && fault.Table != "entries" {
				t.Errorf("hash %s %s: Verify() = %v, want a fault of entry %s", id, c.how, err, completes(t, id))
			}
			b.do(t, c.back, id)
			b.do(t, "DROP TABLE kept")
		}
	}
	if _, err := verify(t, b.path, ledger.VerifyOptions{}); err != nil {
		t.Errorf("with all hashes back: Verify() = %v", err)
	}
}

// completes returns the entry with which a hash is stored.
func completes(t *testing.T, id string) string {
	t.Helper()
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	level, index := tlog.SplitStoredHashIndex(n)
	return strconv.FormatInt((index+1)<<level-1, 10)
}

// TestVerifyNamesHashesOfNoEntry: one that is far behind the others makes every further entry fail.
func TestVerifyNamesHashesOfNoEntry(t *testing.T) {
	for _, change := range []string{
		"INSERT INTO tree SELECT max(id) + 2, hash FROM tree", "INSERT INTO tree SELECT max(id) + 1000000, hash FROM tree",
		"PRAGMA ignore_check_constraints = 1; INSERT INTO tree SELECT -1, hash FROM tree WHERE id = 0",
	} {
		b := newBench(t, archive(t))
		b.do(t, change)
		_, err := verify(t, b.path, ledger.VerifyOptions{})
		var fault *ledger.Fault
		if !errors.As(err, &fault) || fault.Table != "tree" {
			t.Errorf("%s: Verify() = %v, want a fault of tree", change, err)
		}
	}
}
