package storetest

import (
	"context"
	"errors"
	"iter"
	"testing"

	"pgfsm/traces/ledger"
)

func putReplaces(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	old := filled[ledger.Request](t)
	moved := old
	moved.Status, moved.Ended, moved.Seq, moved.Approvers = ledger.Executed, late, 900, nil
	renamed := filled[ledger.Request](t)
	renamed.Actor, renamed.Task, renamed.Server, renamed.Args, renamed.At = "someone else", "", "other", "{}", later
	for _, r := range []ledger.Request{old, moved, renamed} {
		update(t, s, func(tx ledger.Tx) error { return tx.PutRequest(r) })
		same(t, "Requests", []ledger.Request{r}, collect(t, s, func(r ledger.Reader) iter.Seq2[ledger.Request, error] {
			return r.Requests(ledger.Filter{})
		}))
	}
	if got := collect(t, s, func(r ledger.Reader) iter.Seq2[ledger.Request, error] {
		return r.Requests(ledger.Filter{Actor: old.Actor})
	}); got != nil {
		t.Errorf("the request is still found as it was: %v", got)
	}
	update(t, s, func(tx ledger.Tx) error {
		b := blob("text")
		return errors.Join(
			tx.PutToken(ledger.Token{ID: "k", Created: early, Role: "agent"}), tx.PutToken(ledger.Token{ID: "k", Created: early, Revoked: late}),
			tx.PutDelivery(ledger.Delivery{Seq: 1, Hook: "h", State: "waiting"}),
			tx.PutDelivery(ledger.Delivery{Seq: 1, Hook: "h", State: "waiting", Attempts: 3, Error: "refused"}),
			tx.SetDelivered("h", 5), tx.SetDelivered("h", 4), tx.SetDelivered("other", 9),
			tx.PutBlob(b), tx.PutBlob(ledger.Blob{Digest: b.Digest, Kind: "other", Text: "another text"}))
	})
	view(t, s, func(r ledger.Reader) {
		same(t, "Tokens", []ledger.Token{{ID: "k", Created: early, Revoked: late}}, list(t, r.Tokens()))
		same(t, "Deliveries", []ledger.Delivery{{Seq: 1, Hook: "h", State: "waiting", Attempts: 3, Error: "refused"}}, list(t, r.Deliveries(late, 5)))
		same(t, "Blobs", []ledger.Blob{blob("text")}, list(t, r.Blobs()))
		if n, err := r.Delivered("h"); n != 4 || err != nil {
			t.Errorf("Delivered = %d, %v, want 4", n, err)
		}
	})
}

func appendOnly(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	update(t, s, func(tx ledger.Tx) error {
		return errors.Join(tx.AddEvents([]ledger.Event{event(1, "a")}), tx.AddEvents([]ledger.Event{event(5, "a")}), tx.AddDecision(decision(5, "a")))
	})
	for _, tc := range []struct {
		name string
		add  func(ledger.Tx) error
	}{
		{"an-event-of-the-same-seq", func(tx ledger.Tx) error { return tx.AddEvents([]ledger.Event{event(5, "b")}) }},
		{"an-event-between", func(tx ledger.Tx) error { return tx.AddEvents([]ledger.Event{event(3, "b")}) }},
		{"an-event-before-all", func(tx ledger.Tx) error { return tx.AddEvents([]ledger.Event{event(0, "b")}) }},
		{"a-decision-of-the-same-seq", func(tx ledger.Tx) error { return tx.AddDecision(decision(5, "b")) }},
		{"a-decision-before", func(tx ledger.Tx) error { return tx.AddDecision(decision(4, "b")) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := s.Update(context.Background(), func(tx ledger.Tx) error {
				return errors.Join(tx.PutRequest(request("r")), tc.add(tx))
			})
			if err == nil {
				t.Error("Update succeeds")
			}
			view(t, s, func(r ledger.Reader) {
				same(t, "Events", []ledger.Event{event(1, "a"), event(5, "a")}, list(t, r.Events(0)))
				same(t, "Decisions", []ledger.Decision{decision(5, "a")}, list(t, r.Decisions(0)))
				same(t, "Requests", []ledger.Request(nil), list(t, r.Requests(ledger.Filter{})))
			})
		})
	}
}

// writeAll writes a row of each kind.
func writeAll(tx ledger.Tx) error {
	return errors.Join(tx.AddEvents([]ledger.Event{event(1, "a")}), tx.AddDecision(decision(1, "a")),
		tx.PutRequest(request("a")), tx.PutBlob(blob("b")), tx.PutToken(ledger.Token{ID: "k"}),
		tx.PutDelivery(ledger.Delivery{Seq: 1, Hook: "hook", State: "waiting"}), tx.SetDelivered("hook", 1))
}

func undoneByError(t *testing.T, h Harness) {
	s, path := h.fresh(t)
	other := h.open(t, path)
	refused := errors.New("refused")
	err := s.Update(context.Background(), func(tx ledger.Tx) error { return errors.Join(writeAll(tx), refused) })
	if !errors.Is(err, refused) {
		t.Errorf("Update = %v, want the function's error", err)
	}
	nothing(t, s)
	nothing(t, other)
	if err := s.Update(context.Background(), func(ledger.Tx) error { return refused }); err != refused {
		t.Errorf("Update = %v, want exactly the function's error", err)
	}
	if err := s.View(context.Background(), func(ledger.Reader) error { return refused }); err != refused {
		t.Errorf("View = %v, want exactly the function's error", err)
	}
	update(t, s, writeAll)
	same(t, "Events", []ledger.Event{event(1, "a")}, collect(t, other, func(r ledger.Reader) iter.Seq2[ledger.Event, error] { return r.Events(0) }))
}

func undoneByPanic(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	func() {
		defer func() {
			if recover() != "broken" {
				t.Error("the panic does not come through")
			}
		}()
		_ = s.Update(context.Background(), func(tx ledger.Tx) error {
			if err := writeAll(tx); err != nil {
				t.Error(err)
			}
			panic("broken")
		})
	}()
	nothing(t, s)
	update(t, s, writeAll)
}

func ignoredError(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	err := s.Update(context.Background(), func(tx ledger.Tx) error {
		if err := writeAll(tx); err != nil {
			t.Error(err)
		}
		if tx.AddEvents([]ledger.Event{event(1, "b")}) == nil {
			t.Error("the same event can be added twice")
		}
		return nil
	})
	if err == nil {
		t.Error("Update succeeds though a write in it failed")
	}
	nothing(t, s)
}

func usedAfterwards(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	var tx ledger.Tx
	var left iter.Seq2[ledger.Event, error]
	update(t, s, func(x ledger.Tx) error {
		tx, left = x, x.Events(0)
		return writeAll(x)
	})
	var r ledger.Reader
	view(t, s, func(x ledger.Reader) { r = x })
	_, readErr := r.Last()
	_, txErr := tx.Last()
	_, pruneErr := tx.LastPrune()
	_, waitErr := r.Waiting(ledger.Look{})
	for what, err := range map[string]error{ // in any order
		"AddEvent": tx.AddEvents([]ledger.Event{event(2, "a")}), "PutRequest": tx.PutRequest(request("b")), "AddRequest": tx.AddRequest(request("c")), "SetDelivered": tx.SetDelivered("hook", 2),
		"Prune": tx.Prune(1, nil), "Last": txErr, "Last of a view": readErr, "LastPrune": pruneErr, "Waiting": waitErr,
	} {
		if err == nil || errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("%s after the end: %v, want an error", what, err)
		}
	}
	for _, err := range left {
		if err == nil {
			t.Error("a sequence goes on after the end")
		}
	}
	same(t, "Events", []ledger.Event{event(1, "a")}, collect(t, s, func(r ledger.Reader) iter.Seq2[ledger.Event, error] { return r.Events(0) }))
}

func readsOwnWrites(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	update(t, s, func(tx ledger.Tx) error {
		for i := range int64(5) {
			if e, err := tx.Last(); i > 0 && (err != nil || e.Seq != i) {
				t.Errorf("Last = %d, %v, want %d", e.Seq, err, i)
			}
			if err := tx.AddEvents([]ledger.Event{event(i+1, "a")}); err != nil {
				return err
			}
		}
		return errors.Join(tx.PutRequest(request("a")), tx.SetDelivered("hook", 3))
	})
	update(t, s, func(tx ledger.Tx) error {
		q, err := tx.Request("a")
		if err != nil {
			return err
		}
		q.Status = ledger.Executed
		if err := tx.PutRequest(q); err != nil {
			return err
		}
		same(t, "Requests", []string{"a"}, runs(list(t, tx.Requests(ledger.Filter{Statuses: []ledger.Status{ledger.Executed}}))))
		n, err := tx.Delivered("hook")
		if n != 3 {
			t.Errorf("Delivered = %d, want 3", n)
		}
		return err
	})
}

func nestedSequences(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	update(t, s, func(tx ledger.Tx) error {
		for i := range 6 {
			if err := tx.AddEvents([]ledger.Event{event(int64(i+1), "a")}); err != nil {
				return err
			}
		}
		for range 2 { // the second time with what the first one left behind
			pairs := 0
			for e, err := range tx.Events(0) { // the same query twice at a time, and one that is left
				for range tx.Events(e.Seq) {
					pairs++
				}
				for range tx.EventsOf("a") {
					break
				}
				if err != nil {
					return err
				}
			}
			if pairs != 15 {
				t.Errorf("%d pairs, want 15", pairs)
			}
		}
		next, stop := iter.Pull2(tx.Events(0))
		defer stop()
		if e, err, ok := next(); !ok || err != nil || e.Seq != 1 {
			t.Errorf("next = %d, %v, %t", e.Seq, err, ok)
		}
		return nil
	})
	view(t, s, func(r ledger.Reader) {
		if n := len(list(t, r.Events(0))); n != 6 {
			t.Errorf("%d events, want 6", n)
		}
	})
}

// pruning fills a store with three runs, and blobs: two of each run, one that all use, and one that the first two use.
func pruning(t *testing.T, s ledger.Store) {
	t.Helper()
	update(t, s, func(tx ledger.Tx) error {
		for i, run := range []string{"a", "b", "c"} {
			e := event(int64(i+1), run)
			e.Payload = []byte(ledger.Ref(digest("payload " + run)))
			for _, text := range []string{"payload " + run, "args " + run, "shared", []string{"old", "old", "new"}[i]} {
				if err := errors.Join(tx.PutBlob(blob(text)), tx.UseBlob(digest(text), e.Seq)); err != nil {
					return err
				}
			}
			if err := errors.Join(tx.AddEvents([]ledger.Event{e}), tx.PutRequest(request(run)), tx.AddDecision(decision(e.Seq, run)),
				tx.PutDelivery(ledger.Delivery{Seq: int64(i + 1), Hook: "h", State: "waiting"})); err != nil {
				return err
			}
		}
		return errors.Join(tx.AddEvents([]ledger.Event{event(4, "")}), tx.PutToken(ledger.Token{ID: "k"}))
	})
}

func pruned(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	pruning(t, s)
	update(t, s, func(tx ledger.Tx) error { return tx.Prune(2, []string{"a", "b", "none"}) })
	view(t, s, func(r ledger.Reader) {
		same(t, "Events", []int64{3, 4}, seqs(list(t, r.Events(0))))
		same(t, "Requests", []string{"c"}, runs(list(t, r.Requests(ledger.Filter{}))))
		if d := only(t, r.Decisions(0)); d.Seq != 3 {
			t.Errorf("the decision %d is left, want 3", d.Seq)
		}
		if d := only(t, r.Deliveries(late, 9)); d.Seq != 3 {
			t.Errorf("the delivery of %d is left, want 3", d.Seq)
		}
		if n := len(list(t, r.Tokens())); n != 1 {
			t.Errorf("%d tokens are left, want 1", n)
		}
		left := make(map[string]bool)
		for _, text := range texts(list(t, r.Blobs())) {
			left[text] = true
		}
		same(t, "Blobs", map[string]bool{"payload c": true, "args c": true, "shared": true, "new": true}, left)
	})
	update(t, s, func(tx ledger.Tx) error { return tx.AddEvents([]ledger.Event{event(5, "")}) })
	err := s.Update(context.Background(), func(tx ledger.Tx) error { return tx.AddEvents([]ledger.Event{event(1, "")}) })
	if err == nil {
		t.Error("a removed event can be added again")
	}
}

func prunedAndUndone(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	pruning(t, s)
	refused := errors.New("refused")
	err := s.Update(context.Background(), func(tx ledger.Tx) error { return errors.Join(tx.Prune(4, []string{"a", "b", "c"}), refused) })
	if !errors.Is(err, refused) {
		t.Errorf("Update = %v", err)
	}
	view(t, s, func(r ledger.Reader) {
		same(t, "Events", []int64{1, 2, 3, 4}, seqs(list(t, r.Events(0))))
		if n := len(list(t, r.Blobs())); n != 9 {
			t.Errorf("%d blobs, want 9", n)
		}
	})
}
