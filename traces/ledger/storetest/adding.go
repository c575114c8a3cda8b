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
	sameRun, sameEntry := request(1), request(1)
	sameRun.RunID, sameEntry.First = full.RunID, full.First
	sameNumber := full
	sameNumber.Entry, sameNumber.Status = full.Entry+1, ledger.Executed
	for _, tc := range []struct {
		name  string
		write func(ledger.Tx) error
	}{
		{"the-run-is-there", func(tx ledger.Tx) error { return tx.AddRun(sameRun) }},
		{"another-run-of-its-entry", func(tx ledger.Tx) error { return tx.AddRun(sameEntry) }},
		{"put-a-run-that-is-missing", func(tx ledger.Tx) error { return tx.PutRun(request(1)) }},
		{"put-with-another-first-entry", func(tx ledger.Tx) error { return tx.PutRun(sameRun) }},
		{"put-another-entry-of-the-same-number", func(tx ledger.Tx) error { return tx.PutRun(sameNumber) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := s.Update(context.Background(), tc.write); err == nil {
				t.Error("Update succeeds")
			}
			view(t, s, func(r ledger.Reader) { wantEqual(t, "Runs", full, onlyRow(t, r.Runs(ledger.Filter{}))) })
		})
	}
}

// addsPruned copies a pruned log: entries 1 and 2 have only headers, and the tree is whole.
func addsPruned(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	log, hashes := storedTree(t, 5)
	log[1], log[2] = removed(log[1]), removed(log[2])
	for i, e := range log {
		update(t, s, func(tx ledger.Tx) error { return tx.AddEntry(e, hashes[i]) })
	}
	view(t, s, func(r ledger.Reader) {
		wantEqual(t, "Entries", log, list(t, r.Entries(0)))
		n, err := r.CountHashes()
		if want := tlog.StoredHashCount(5); n != want || err != nil {
			t.Errorf("CountHashes = %d, %v, want %d", n, err, want)
		}
		wantHashes(t, r, hashes)
	})
	for _, index := range []int64{1, 4} {
		if err := s.Update(context.Background(), func(tx ledger.Tx) error { return tx.AddEntry(log[index], hashes[index]) }); err == nil {
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
				if err := addToTree(tx, entry(e.Index, "")); err != nil {
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
		e := entry(i, id(1))
		if i > 0 {
			e = following(log[i-1], i)
		}
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
