package storetest

import (
	"context"
	"fmt"
	"testing"

	"pgfsm/traces/ledger"
)

func addRefuses(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	full := filled[ledger.Request](t)
	update(t, s, func(tx ledger.Tx) error { return tx.AddRequest(full) })
	other := request(full.RunID)
	if err := s.Update(context.Background(), func(tx ledger.Tx) error { return tx.AddRequest(other) }); err == nil {
		t.Error("a request can be added twice")
	}
	view(t, s, func(r ledger.Reader) { same(t, "Requests", full, only(t, r.Requests(ledger.Filter{}))) })
	update(t, s, func(tx ledger.Tx) error { return tx.PutRequest(other) })
	view(t, s, func(r ledger.Reader) { same(t, "Requests", other, only(t, r.Requests(ledger.Filter{}))) })
}

// manyRows adds rows together: as many as fit any statement, and some more.
func manyRows(t *testing.T, h Harness) {
	for _, n := range []int{0, 1, 2, 15, 16, 17, 32, 33, 100} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s, _ := h.fresh(t)
			var entries []ledger.Entry
			for i := range n {
				entries = append(entries, entry(int64(i+1), "a"))
			}
			update(t, s, func(tx ledger.Tx) error { return add(tx, entries...) })
			view(t, s, func(r ledger.Reader) {
				same(t, "Entries", entries, list(t, r.Entries(0)))
				same(t, "EntriesOf", entries, list(t, r.EntriesOf("a")))
				for after := range n {
					same(t, fmt.Sprintf("Entries(%d)", after), entries[after:], list(t, r.Entries(int64(after+1))))
				}
				if e, err := last(r); n > 0 && (err != nil || e != int64(n)) {
					t.Errorf("the last entry is %d, %v, want %d", e, err, n)
				}
			})
			again := append([]ledger.Entry{entry(int64(n+1), "b")}, entries...) // one of many is refused
			if err := s.Update(context.Background(), func(tx ledger.Tx) error { return add(tx, again...) }); (err == nil) != (n == 0) {
				t.Errorf("entries that are there are added again: %v", err)
			}
			view(t, s, func(r ledger.Reader) {
				if got := len(list(t, r.Entries(0))); got != max(n, 1) {
					t.Errorf("%d entries, want %d", got, max(n, 1))
				}
			})
		})
	}
}
