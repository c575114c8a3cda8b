package ledger_test

import (
	"errors"
	"strconv"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
)

// TestVerifyNamesHashes changes, removes and adds hashes of the tree, leaves and inner ones. The fault names the entry that completes the
// hash. A hash that no entry completes is a fault of the tree.
func TestVerifyNamesHashes(t *testing.T) {
	b := openRaw(t, archive(t))
	b.do(t, "PRAGMA ignore_check_constraints = 1")
	stride := every(t)
	for i, index := range b.texts(t, "SELECT idx FROM entries ORDER BY idx") {
		if i%stride > 1 { // of two that follow each other, one completes several
			continue
		}
		n, err := strconv.ParseInt(index, 10, 64)
		check.NoError(t, err)
		for hash := range tlog.StoredHashIndex(0, n+1) - tlog.StoredHashIndex(0, n) {
			before, after := strconv.FormatInt(tlog.HashSize*hash, 10), strconv.FormatInt(tlog.HashSize*(hash+1)+1, 10)
			b.hashes(t, index, "substr(hashes, 1, "+before+") || randomblob(32) || substr(hashes, "+after+")", "entries", index)
			b.hashes(t, index, "substr(hashes, 1, "+before+") || substr(hashes, "+after+")", "entries", index)
		}
		b.hashes(t, index, "hashes || zeroblob(32)", "tree", "")
	}
	if _, err := verify(t, b.path, ledger.VerifyOptions{}); err != nil {
		t.Errorf("with all hashes back: Verify() = %v", err)
	}
}

// hashes changes the hashes of an entry, and wants the fault; an empty key is any.
func (b *rawFile) hashes(t *testing.T, index, to, table, key string) {
	t.Helper()
	b.do(t, "CREATE TEMP TABLE kept AS SELECT hashes FROM entries WHERE idx = ?", index)
	b.do(t, "UPDATE entries SET hashes = CAST("+to+" AS BLOB) WHERE idx = ?", index)
	_, err := verify(t, b.path, ledger.VerifyOptions{})
	var fault *ledger.Fault
	if !errors.As(err, &fault) || fault.Table != table || key != "" && fault.Key != key {
		t.Errorf("entry %s, hashes = %s: Verify() = %v, want a fault of %s %s", index, to, err, table, key)
	}
	b.do(t, "UPDATE entries SET hashes = (SELECT hashes FROM kept) WHERE idx = ?", index)
	b.do(t, "DROP TABLE kept")
}
