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
			var events []ledger.Event
			for i := range n {
				e := event(int64(i+1), "a")
				if i%7 > 0 { // the others begin a chain
					e.RunPrev = e.Prev
				}
				events = append(events, e)
			}
			update(t, s, func(tx ledger.Tx) error { return tx.AddEvents(events) })
			view(t, s, func(r ledger.Reader) {
				same(t, "Events", events, list(t, r.Events(0)))
				same(t, "EventsOf", events, list(t, r.EventsOf("a")))
				for after := range n {
					same(t, fmt.Sprintf("Events(%d)", after), events[after:], list(t, r.Events(int64(after))))
				}
				if e, err := r.Last(); n > 0 && (err != nil || e.Seq != int64(n)) {
					t.Errorf("Last = %d, %v, want %d", e.Seq, err, n)
				}
			})
			again := append([]ledger.Event{event(int64(n+1), "b")}, events...) // one of many is refused
			if err := s.Update(context.Background(), func(tx ledger.Tx) error { return tx.AddEvents(again) }); (err == nil) != (n == 0) {
				t.Errorf("events that are there are added again: %v", err)
			}
			view(t, s, func(r ledger.Reader) {
				if got := len(list(t, r.Events(0))); got != max(n, 1) {
					t.Errorf("%d events, want %d", got, max(n, 1))
				}
			})
		})
	}
}
