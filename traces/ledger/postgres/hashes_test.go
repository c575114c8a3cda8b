//go:build unix

package postgres_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
)

// TestHashesOfSeveralStores: stores that add entries in any order, several in a transaction, make the tree that one would make. What a transaction
// added that failed is not part of it.
func TestHashesOfSeveralStores(t *testing.T) {
	url := fresh(t, serves)
	stores := []ledger.Store{open(t, url), open(t, url)}
	var want []tlog.Hash
	memory := tlog.HashReaderFunc(func(ids []int64) ([]tlog.Hash, error) {
		hashes := make([]tlog.Hash, len(ids))
		for i, id := range ids {
			hashes[i] = want[id]
		}
		return hashes, nil
	})
	failed := errors.New("the transaction fails")
	random := rand.New(rand.NewPCG(1, 2))
	for size := int64(0); size < 100; {
		fails, n := random.IntN(3) == 0, 1+random.Int64N(5)
		err := stores[random.IntN(2)].Update(t.Context(), func(tx ledger.Tx) error {
			for index := size; index < size+n; index++ {
				leaf := tlog.RecordHash(fmt.Appendf(nil, "%d %t", index, fails))
				hashes, err := tlog.StoredHashesForRecordHash(index, leaf, tx)
				if err != nil {
					return err
				}
				e := ledger.Entry{Index: index, Type: ledger.MCPPassed, Events: []byte("[]")}
				if err := tx.AddEntry(e, hashes); err != nil {
					return err
				}
			}
			if fails {
				return failed
			}
			return nil
		})
		if fails {
			if !errors.Is(err, failed) {
				t.Fatalf("Update() = %v, want its function's error", err)
			}
			continue
		}
		check.NoError(t, err)
		for ; n > 0; n-- {
			hashes, err := tlog.StoredHashesForRecordHash(size, tlog.RecordHash(fmt.Appendf(nil, "%d false", size)), memory)
			check.NoError(t, err)
			want = append(want, hashes...)
			size++
		}
	}
	ids := make([]int64, len(want))
	for i := range ids {
		ids[i] = int64(i)
	}
	for i, s := range stores {
		err := s.View(t.Context(), func(r ledger.Reader) error {
			got, err := r.ReadHashes(ids)
			for id := range got {
				if got[id] != want[id] {
					t.Errorf("store %d: the hash %d is %s, want %s", i, id, got[id], want[id])
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
