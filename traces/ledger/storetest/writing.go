package storetest

import (
	"context"
	"errors"
	"iter"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/traces/ledger"
)

func putReplaces(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	old := filled[ledger.RunRow](t)
	moved := old
	moved.Status, moved.Ended, moved.Entry, moved.Approvers = ledger.Executed, late, 900, nil
	renamed := filled[ledger.RunRow](t)
	renamed.Actor, renamed.Task, renamed.Server, renamed.Args, renamed.At = "someone else", "", "other", "{}", later
	for _, r := range []ledger.RunRow{old, moved, renamed} {
		update(t, s, func(tx ledger.Tx) error { return tx.PutRun(r) })
		wantEqual(t, "Requests", []ledger.RunRow{r}, collect(t, s, func(r ledger.Reader) iter.Seq2[ledger.RunRow, error] {
			return r.Runs(ledger.Filter{})
		}))
	}
	if got := collect(t, s, func(r ledger.Reader) iter.Seq2[ledger.RunRow, error] {
		return r.Runs(ledger.Filter{Actor: old.Actor})
	}); got != nil {
		t.Errorf("the request is still found as it was: %v", got)
	}
	update(t, s, func(tx ledger.Tx) error {
		b := blob("text")
		return errors.Join(
			tx.PutToken(ledger.Token{ID: "k", Created: early, Role: "agent"}), tx.PutToken(ledger.Token{ID: "k", Created: early, Revoked: late}),
			tx.PutDelivery(ledger.Delivery{Entry: 1, Hook: "h", State: "waiting"}),
			tx.PutDelivery(ledger.Delivery{Entry: 1, Hook: "h", State: "waiting", Attempts: 3, Error: "refused"}),
			tx.SetNextDelivery("h", 5), tx.SetNextDelivery("h", 4), tx.SetNextDelivery("other", 9),
			tx.PutBlob(b), tx.PutBlob(ledger.Blob{Digest: b.Digest, Kind: "other", Text: "another text"}))
	})
	view(t, s, func(r ledger.Reader) {
		wantEqual(t, "Tokens", []ledger.Token{{ID: "k", Created: early, Revoked: late}}, list(t, r.Tokens()))
		wantEqual(t, "Deliveries", []ledger.Delivery{{Entry: 1, Hook: "h", State: "waiting", Attempts: 3, Error: "refused"}}, list(t, r.Deliveries("", late, 5)))
		wantEqual(t, "Blobs", []ledger.Blob{blob("text")}, list(t, r.Blobs()))
		wantEqual(t, "Hooks", []string{"h", "other"}, list(t, r.Hooks()))
		if n, err := r.NextDelivery("h"); n != 4 || err != nil {
			t.Errorf("Delivered = %d, %v, want 4", n, err)
		}
	})
}

func dropsTokens(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	update(t, s, func(tx ledger.Tx) error {
		return errors.Join(tx.PutToken(ledger.Token{ID: "a"}), tx.PutToken(ledger.Token{ID: "b"}), tx.DropToken("a"), tx.DropToken("none"))
	})
	view(t, s, func(r ledger.Reader) { wantEqual(t, "Tokens", []ledger.Token{{ID: "b"}}, list(t, r.Tokens())) })
}

func blocks(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	again := ledger.Block{Name: "b", Since: late, By: "bob", Entry: 2}
	update(t, s, func(tx ledger.Tx) error {
		return errors.Join(
			tx.PutBlock(ledger.Block{Name: "c"}), tx.PutBlock(ledger.Block{Name: "b", Since: early, By: "ann", Entry: 1}), tx.PutBlock(again),
			tx.PutBlock(ledger.Block{Name: "B"}), tx.PutBlock(ledger.Block{Name: "a"}), tx.DropBlock("a"), tx.DropBlock("none"))
	})
	view(t, s, func(r ledger.Reader) {
		wantEqual(t, "Blocks", []ledger.Block{{Name: "B"}, again, {Name: "c"}}, list(t, r.Blocks()))
		b, err := r.Block("a")
		missing(t, "Block", b, err)
	})
}

func appendOnly(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	update(t, s, func(tx ledger.Tx) error {
		return errors.Join(add(tx, entry(1, "a")), add(tx, entry(5, "a")))
	})
	for _, tc := range []struct {
		name string
		add  func(ledger.Tx) error
	}{
		{"an-entry-of-the-same-index", func(tx ledger.Tx) error { return add(tx, entry(5, "b")) }},
		{"an-entry-between", func(tx ledger.Tx) error { return add(tx, entry(3, "b")) }},
		{"an-entry-before-all", func(tx ledger.Tx) error { return add(tx, entry(0, "b")) }},
		{"an-entry-of-the-same-number-in-its-run", func(tx ledger.Tx) error {
			e := entry(6, "a")
			e.N = 5
			return add(tx, e)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := s.Update(context.Background(), func(tx ledger.Tx) error {
				return errors.Join(tx.PutRun(request("r")), tc.add(tx))
			})
			if err == nil {
				t.Error("Update succeeds")
			}
			view(t, s, func(r ledger.Reader) {
				wantEqual(t, "Entries", []ledger.Entry{entry(1, "a"), entry(5, "a")}, list(t, r.Entries(0)))
				wantEqual(t, "Requests", []ledger.RunRow(nil), list(t, r.Runs(ledger.Filter{})))
			})
		})
	}
}

// writeAll writes a row of each kind.
func writeAll(tx ledger.Tx) error {
	return errors.Join(add(tx, entry(1, "a")),
		tx.PutRun(request("a")), tx.PutBlob(blob("b")), tx.PutToken(ledger.Token{ID: "k"}),
		tx.PutDelivery(ledger.Delivery{Entry: 1, Hook: "hook", State: "waiting"}), tx.SetNextDelivery("hook", 1))
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
	wantEqual(t, "Entries", []ledger.Entry{entry(1, "a")}, collect(t, other, func(r ledger.Reader) iter.Seq2[ledger.Entry, error] { return r.Entries(0) }))
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
		if add(tx, entry(1, "b")) == nil {
			t.Error("the same entry can be added twice")
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
	var left iter.Seq2[ledger.Entry, error]
	update(t, s, func(x ledger.Tx) error {
		tx, left = x, x.Entries(0)
		return writeAll(x)
	})
	var r ledger.Reader
	view(t, s, func(x ledger.Reader) { r = x })
	_, readErr := r.End()
	_, txErr := tx.End()
	_, typeErr := tx.LastOfType(ledger.LedgerPruned)
	_, hashErr := tx.ReadHashes([]int64{1})
	_, countErr := tx.CountHashes()
	_, waitErr := r.FindWaiting(ledger.RepeatedCall{})
	for what, err := range map[string]error{ // in any order
		"AddEntry": add(tx, entry(2, "a")), "PutRequest": tx.PutRun(request("b")), "AddRequest": tx.AddRun(request("c")), "SetDelivered": tx.SetNextDelivery("hook", 2),
		"Prune": tx.Prune(nil, nil, nil), "End": txErr, "End of a view": readErr, "LastOf": typeErr, "ReadHashes": hashErr, "CountHashes": countErr,
		"Waiting": waitErr,
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
	wantEqual(t, "Entries", []ledger.Entry{entry(1, "a")}, collect(t, s, func(r ledger.Reader) iter.Seq2[ledger.Entry, error] { return r.Entries(0) }))
}

func readsOwnWrites(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	update(t, s, func(tx ledger.Tx) error {
		for i := range int64(5) {
			if e, err := last(tx); i > 0 && (err != nil || e != i) {
				t.Errorf("the last entry is %d, %v, want %d", e, err, i)
			}
			if err := add(tx, entry(i+1, "a")); err != nil {
				return err
			}
		}
		return errors.Join(tx.PutRun(request("a")), tx.SetNextDelivery("hook", 3))
	})
	update(t, s, func(tx ledger.Tx) error {
		q, err := tx.Run("a")
		if err != nil {
			return err
		}
		q.Status = ledger.Executed
		if err := tx.PutRun(q); err != nil {
			return err
		}
		wantEqual(t, "Requests", []string{"a"}, runs(list(t, tx.Runs(ledger.Filter{Statuses: []ledger.Status{ledger.Executed}}))))
		n, err := tx.NextDelivery("hook")
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
			if err := add(tx, entry(int64(i+1), "a")); err != nil {
				return err
			}
		}
		for range 2 { // the second time with the rows of the first
			pairs := 0
			for e, err := range tx.Entries(0) { // the same query twice at a time, one of them not read to the end
				for range tx.Entries(e.Index + 1) {
					pairs++
				}
				for range tx.EntriesOf("a") {
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
		next, stop := iter.Pull2(tx.Entries(0))
		defer stop()
		if e, err, ok := next(); !ok || err != nil || e.Index != 1 {
			t.Errorf("next = %d, %v, %t", e.Index, err, ok)
		}
		return nil
	})
	view(t, s, func(r ledger.Reader) {
		if n := len(list(t, r.Entries(0))); n != 6 {
			t.Errorf("%d entries, want 6", n)
		}
	})
}

// pruning fills a store with three runs, and a blob of each.
func pruning(t *testing.T, s ledger.Store) {
	t.Helper()
	update(t, s, func(tx ledger.Tx) error {
		for i, run := range []string{"a", "b", "c"} {
			if err := errors.Join(tx.PutBlob(blob("of "+run)), add(tx, entry(int64(i+1), run)), tx.PutRun(request(run)),
				tx.PutDelivery(ledger.Delivery{Entry: int64(i + 1), Hook: "h", State: "waiting"})); err != nil {
				return err
			}
		}
		return errors.Join(add(tx, entry(4, "")), tx.PutToken(ledger.Token{ID: "k"}))
	})
}

func pruned(t *testing.T, h Harness) {
	for _, c := range []struct {
		name    string
		entries []ledger.Range
		gone    []string // runs
		left    string
	}{
		{"the-first", []ledger.Range{{First: 1, Last: 2}}, []string{"a", "b"}, "c"},
		{"behind-one-that-stays", []ledger.Range{{First: 2, Last: 3}}, []string{"b", "c"}, "a"},
		{"around-one-that-stays", []ledger.Range{{First: 1, Last: 1}, {First: 3, Last: 3}}, []string{"a", "c"}, "b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := h.fresh(t)
			pruning(t, s)
			blobs := []canonical.Digest{digest("of none")}
			for _, run := range c.gone {
				blobs = append(blobs, digest("of "+run))
			}
			update(t, s, func(tx ledger.Tx) error { return tx.Prune(c.entries, append(c.gone, "none"), blobs) })
			view(t, s, func(r ledger.Reader) {
				wantEqual(t, "Requests", []string{c.left}, runs(list(t, r.Runs(ledger.Filter{}))))
				wantEqual(t, "Blobs", []string{"of " + c.left}, texts(list(t, r.Blobs())))
				entries := list(t, r.Entries(0))
				if len(entries) != 2 || entries[0].RunID != c.left || onlyRow(t, r.Deliveries("", late, 9)).Entry != entries[0].Index {
					t.Errorf("entries and deliveries are left: %v", entries)
				}
				if n := len(list(t, r.Tokens())); n != 1 {
					t.Errorf("%d tokens are left, want 1", n)
				}
				for index := range int64(3) {
					if _, err := r.ReadHashes([]int64{tlog.StoredHashIndex(0, index+1)}); err != nil {
						t.Errorf("the hash of entry %d: %v", index+1, err)
					}
				}
			})
			addAfter(t, s)
		})
	}
}

// addAfter adds after a prune.
func addAfter(t *testing.T, s ledger.Store) {
	t.Helper()
	update(t, s, func(tx ledger.Tx) error { return add(tx, entry(5, "")) })
	err := s.Update(context.Background(), func(tx ledger.Tx) error { return add(tx, entry(1, "")) })
	if err == nil {
		t.Error("a removed entry can be added again")
	}
}
