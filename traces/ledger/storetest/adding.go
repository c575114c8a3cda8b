package storetest

import (
	"context"
	"errors"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
)

func addRefuses(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	full := filled[ledger.RunRow](t)
	update(t, s, func(tx ledger.Tx) error { return tx.AddRun(full) })
	other := request(full.RunID)
	if err := s.Update(context.Background(), func(tx ledger.Tx) error { return tx.AddRun(other) }); err == nil {
		t.Error("a request can be added twice")
	}
	view(t, s, func(r ledger.Reader) { wantEqual(t, "Requests", full, onlyRow(t, r.Runs(ledger.Filter{}))) })
	update(t, s, func(tx ledger.Tx) error { return tx.PutRun(other) })
	view(t, s, func(r ledger.Reader) { wantEqual(t, "Requests", other, onlyRow(t, r.Runs(ledger.Filter{}))) })
}

// addsPruned copies a pruned log: entries 1 and 2 have only hashes, and the tree is whole.
func addsPruned(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	log, hashes := storedTree(t, 5)
	update(t, s, func(tx ledger.Tx) error {
		return errors.Join(tx.AddEntry(log[0], hashes[0]), tx.AddEntry(ledger.Entry{Index: 1}, hashes[1]),
			tx.AddEntry(ledger.Entry{Index: 2}, hashes[2]), tx.AddEntry(log[3], hashes[3]))
	})
	update(t, s, func(tx ledger.Tx) error { return tx.AddEntry(log[4], hashes[4]) })
	view(t, s, func(r ledger.Reader) {
		wantEqual(t, "Entries", []ledger.Entry{log[0], log[3], log[4]}, list(t, r.Entries(0)))
		wantEqual(t, "EntriesOf", []ledger.Entry{log[0], log[3], log[4]}, list(t, r.EntriesOf("a")))
		n, err := r.CountHashes()
		if want := tlog.StoredHashCount(5); n != want || err != nil {
			t.Errorf("CountHashes = %d, %v, want %d", n, err, want)
		}
		wantHashes(t, r, hashes)
	})
	for _, index := range []int64{1, 4} {
		if err := s.Update(context.Background(), func(tx ledger.Tx) error { return tx.AddEntry(ledger.Entry{Index: index}, hashes[index]) }); err == nil {
			t.Errorf("entry %d can be added again", index)
		}
	}
}

// tree checks that two stores make the tree that one would make, and that no hash remains of a transaction that failed.
func tree(t *testing.T, h Harness) {
	s, path := h.fresh(t)
	other := h.open(t, path)
	log, hashes := storedTree(t, 60)
	for turn, rest := 0, log; len(rest) > 0; turn++ {
		n := min(1+turn%5, len(rest))
		adds, fails := s, other
		if turn%3 > 0 {
			adds, fails = other, s
		}
		wanted := errors.New("wanted")
		err := fails.Update(context.Background(), func(tx ledger.Tx) error {
			for _, e := range rest[:n] {
				if err := addToTree(tx, entry(e.Index, "never-added")); err != nil {
					return err
				}
			}
			return wanted
		})
		if !errors.Is(err, wanted) {
			t.Fatalf("Update = %v, want its function's error", err)
		}
		update(t, adds, func(tx ledger.Tx) error {
			for _, e := range rest[:n] {
				if err := addToTree(tx, e); err != nil {
					return err
				}
			}
			return nil
		})
		rest = rest[n:]
	}
	for _, s := range []ledger.Store{s, other} {
		view(t, s, func(r ledger.Reader) { wantHashes(t, r, hashes) })
	}
}

// addToTree adds an entry with the hashes that it completes.
func addToTree(tx ledger.Tx, e ledger.Entry) error {
	hashes, err := tlog.StoredHashesForRecordHash(e.Index, tlog.RecordHash(e.Leaf()), tx)
	if err != nil {
		return err
	}
	return tx.AddEntry(e, hashes)
}

// wantHashes checks the hashes that each entry completes.
func wantHashes(t *testing.T, r ledger.Reader, want [][]tlog.Hash) {
	t.Helper()
	for i, own := range want {
		for j, want := range own {
			id := tlog.StoredHashIndex(0, int64(i)) + int64(j)
			if got, err := r.ReadHashes([]int64{id}); err != nil || got[0] != want {
				t.Errorf("ReadHashes(%d) = %v, %v, want %v", id, got, err, want)
			}
		}
	}
}

// storedTree returns the entries of a log of one run, each with the hashes that it completes.
func storedTree(t *testing.T, n int64) (log []ledger.Entry, hashes [][]tlog.Hash) {
	t.Helper()
	var all []tlog.Hash
	for i := range n {
		e := entry(i, "a")
		own, err := tlog.StoredHashesForRecordHash(i, tlog.RecordHash(e.Leaf()), tlog.HashReaderFunc(func(ids []int64) (found []tlog.Hash, _ error) {
			for _, id := range ids {
				found = append(found, all[id])
			}
			return found, nil
		}))
		check.NoError(t, err)
		log, hashes, all = append(log, e), append(hashes, own), append(all, own...)
	}
	return log, hashes
}
