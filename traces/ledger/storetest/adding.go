package storetest

import (
	"context"
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
