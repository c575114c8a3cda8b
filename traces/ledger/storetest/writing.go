package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/traces/ledger"
)

func putReplaces(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	old := filled[ledger.RunRow](t)
	changed := row(1, ledger.RunRow{Actor: "someone else", At: later, Status: ledger.Executed, State: "executed"})
	changed.RunID, changed.First, changed.Entry, changed.Entries = old.RunID, old.First, old.Entry+1, old.Entries+1
	moved := changed // what no event changes stays
	moved.At, moved.Kind, moved.Actor, moved.Display, moved.OnBehalfOf, moved.OnBehalfOfDisplay, moved.Client, moved.Task, moved.Env =
		old.At, old.Kind, old.Actor, old.Display, old.OnBehalfOf, old.OnBehalfOfDisplay, old.Client, old.Task, old.Env
	moved.Server, moved.Tool, moved.Args, moved.Arguments, moved.Definition, moved.Bundle, moved.Trace, moved.Session =
		old.Server, old.Tool, old.Args, old.Arguments, old.Definition, old.Bundle, old.Trace, old.Session
	update(t, s, func(tx ledger.Tx) error { return errors.Join(tx.AddRun(old), tx.PutRun(changed)) })
	view(t, s, func(r ledger.Reader) {
		wantEqual(t, "Runs", moved, onlyRow(t, r.Runs(ledger.Filter{})))
		wantEqual(t, "runs as they were", []ledger.RunRow(nil), list(t, r.Runs(ledger.Filter{Held: true})))
	})
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

func connections(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	of := func(person, server, id string) ledger.Connection {
		return ledger.Connection{Person: person, Server: server, ID: id, State: ledger.ConnectionReady, Sealed: []byte{0, 255, 39}}
	}
	again := of("b", "s", "3")
	again.State, again.Scopes, again.Generation = ledger.ConnectionLost, []string{"repo", "read:org"}, 2
	update(t, s, func(tx ledger.Tx) error {
		return errors.Join(
			tx.PutConnection(of("b", "t", "1")), tx.PutConnection(of("b", "s", "2")), tx.PutConnection(again), tx.PutConnection(of("B", "s", "4")),
			tx.PutConnection(of("a", "s", "5")), tx.DropConnection("a", "s"), tx.DropConnection("b", "none"))
	})
	view(t, s, func(r ledger.Reader) {
		wantEqual(t, "Connections", []ledger.Connection{of("B", "s", "4"), again, of("b", "t", "1")}, list(t, r.Connections()))
		c, err := r.Connection("b", "s")
		wantEqual(t, "Connection", again, c)
		wantEqual(t, "error", nil, err)
		c, err = r.Connection("a", "s")
		missing(t, "Connection", c, err)
	})
}

func appendOnly(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	update(t, s, func(tx ledger.Tx) error {
		return add(tx, entry(1, id(1)), entry(5, id(1)))
	})
	for _, tc := range []struct {
		name string
		add  func(ledger.Tx) error
	}{
		{"an-entry-of-the-same-index", func(tx ledger.Tx) error { return add(tx, entry(5, id(2))) }},
		{"an-entry-between", func(tx ledger.Tx) error { return add(tx, entry(3, id(2))) }},
		{"an-entry-before-all", func(tx ledger.Tx) error { return add(tx, entry(0, id(2))) }},
		{"an-entry-without-body-and-header", func(tx ledger.Tx) error { return add(tx, ledger.Entry{Index: 6, At: early}) }},
		{"an-entry-with-body-and-header", func(tx ledger.Tx) error {
			e := entry(6, "")
			e.Header = e.Body
			return add(tx, e)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := s.Update(context.Background(), func(tx ledger.Tx) error {
				return errors.Join(tx.AddRun(request(1)), tc.add(tx))
			})
			if err == nil {
				t.Error("Update succeeds")
			}
			view(t, s, func(r ledger.Reader) {
				wantEqual(t, "Entries", []ledger.Entry{entry(1, id(1)), entry(5, id(1))}, list(t, r.Entries(0)))
				wantEqual(t, "Requests", []ledger.RunRow(nil), list(t, r.Runs(ledger.Filter{})))
			})
		})
	}
}

// writeAll writes a row of each kind.
func writeAll(tx ledger.Tx) error {
	return errors.Join(add(tx, entry(1, id(1))),
		tx.AddRun(request(1)), tx.PutBlob(blob("b")), tx.PutToken(ledger.Token{ID: "k"}),
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
	wantEqual(t, "Entries", []ledger.Entry{entry(1, id(1))}, collect(t, other, func(r ledger.Reader) iter.Seq2[ledger.Entry, error] { return r.Entries(0) }))
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
		if add(tx, entry(1, id(2))) == nil {
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
		"AddEntry": add(tx, entry(2, id(1))), "PutRequest": tx.PutRun(request(1)), "AddRequest": tx.AddRun(request(3)), "SetDelivered": tx.SetNextDelivery("hook", 2),
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
	wantEqual(t, "Entries", []ledger.Entry{entry(1, id(1))}, collect(t, s, func(r ledger.Reader) iter.Seq2[ledger.Entry, error] { return r.Entries(0) }))
}

func readsOwnWrites(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	update(t, s, func(tx ledger.Tx) error {
		for i := range int64(5) {
			if e, err := last(tx); i > 0 && (err != nil || e != i) {
				t.Errorf("the last entry is %d, %v, want %d", e, err, i)
			}
			if err := add(tx, entry(i+1, id(1))); err != nil {
				return err
			}
		}
		return errors.Join(tx.AddRun(request(1)), tx.SetNextDelivery("hook", 3))
	})
	update(t, s, func(tx ledger.Tx) error {
		q, err := tx.Run(id(1))
		if err != nil {
			return err
		}
		q.Status = ledger.Executed
		if err := tx.PutRun(q); err != nil {
			return err
		}
		wantEqual(t, "Requests", []int{1}, runs(list(t, tx.Runs(ledger.Filter{Statuses: []ledger.Status{ledger.Executed}}))))
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
			if err := add(tx, entry(int64(i+1), "")); err != nil {
				return err
			}
		}
		for range 2 { // the second time with the rows of the first
			pairs := 0
			for e, err := range tx.Entries(0) { // the same query twice at a time, one of them not read to the end
				for range tx.Entries(e.Index + 1) {
					pairs++
				}
				for range tx.Entries(0) {
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

// malformedValues checks that a value that has not its column's form is an error that names it, and ends the transaction.
func malformedValues(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	adding := func(change func(*ledger.RunRow)) func(ledger.Tx) error {
		r := request(1)
		change(&r)
		return func(tx ledger.Tx) error { return tx.AddRun(r) }
	}
	putting := func(change func(*ledger.RunRow)) func(ledger.Tx) error {
		r := request(1)
		change(&r)
		return func(tx ledger.Tx) error { return errors.Join(tx.AddRun(request(1)), tx.PutRun(r)) }
	}
	for _, tc := range []struct {
		name  string
		write func(ledger.Tx) error
		says  string
	}{
		{"run-of-an-entry", func(tx ledger.Tx) error { return add(tx, entry(2, "run-1")) }, `entry 2: "run-1" is no id`},
		{"run-in-capitals", func(tx ledger.Tx) error { return add(tx, entry(2, strings.ToUpper(id(1)))) }, strings.ToUpper(id(1))},
		{"run-in-braces", adding(func(r *ledger.RunRow) { r.RunID = "{" + r.RunID + "}" }), "{" + id(1) + "}"},
		{"no-run", adding(func(r *ledger.RunRow) { r.RunID = "" }), "run"},
		{"owner", putting(func(r *ledger.RunRow) { r.Owner = "host" }), `"host" is no id`},
		{"time-of-an-entry", func(tx ledger.Tx) error { return add(tx, ledger.Entry{At: "soon", Body: []byte("{}")}) }, `"soon" is no time`},
		{"time-without-milliseconds", adding(func(r *ledger.RunRow) { r.Expires = "2026-01-01T00:00:00Z" }), `"2026-01-01T00:00:00Z" is no time`},
		{"time-of-a-zone", putting(func(r *ledger.RunRow) { r.Ended = "2026-01-01T00:00:00.000+01:00" }), "+01:00"},
		{"no-time", adding(func(r *ledger.RunRow) { r.At = "" }), "at"},
		{"digest-that-is-short", adding(func(r *ledger.RunRow) { r.Bundle = "sha256:12" }), `"sha256:12" is no digest`},
		{"digest-without-prefix", putting(func(r *ledger.RunRow) { r.Head = digest("")[7:] }), string(digest("")[7:])},
		{"digest-in-capitals", adding(func(r *ledger.RunRow) { r.Definition = "sha256:" + canonical.Digest(strings.Repeat("A", 64)) }), "AAAA"},
		{"no-digest", adding(func(r *ledger.RunRow) { r.Bundle = "" }), "bundle"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := s.Update(context.Background(), func(tx ledger.Tx) error {
				_ = errors.Join(tx.SetNextDelivery("hook", 1), tc.write(tx)) // Update must fail whatever is made of this
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Update() = %v, want an error that says %s", err, tc.says)
			}
			nothing(t, s)
		})
	}
}

// pruning fills a store with three runs, and a blob of each.
func pruning(t *testing.T, s ledger.Store) (log []ledger.Entry) {
	t.Helper()
	update(t, s, func(tx ledger.Tx) error {
		for i := range 3 {
			log = append(log, entry(int64(i+1), id(i)))
			if err := errors.Join(tx.PutBlob(blob(fmt.Sprint("of ", i))), add(tx, log[i]), tx.AddRun(row(i, ledger.RunRow{Entry: int64(i + 1)})),
				tx.PutDelivery(ledger.Delivery{Entry: int64(i + 1), Hook: "h", State: "waiting"})); err != nil {
				return err
			}
		}
		log = append(log, following(log[0], 4))
		return errors.Join(add(tx, log[3]), tx.PutToken(ledger.Token{ID: "k"}))
	})
	return log
}

func pruned(t *testing.T, h Harness) {
	for _, c := range []struct {
		name    string
		entries []int
		gone    []int // runs
		left    int
	}{
		{"the-first", []int{1, 2, 4}, []int{0, 1}, 2},
		{"behind-one-that-stays", []int{2, 3}, []int{1, 2}, 0},
		{"around-one-that-stays", []int{1, 3, 4}, []int{0, 2}, 1},
		{"nothing", nil, []int{0, 2}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := h.fresh(t)
			log := pruning(t, s)
			var entries []ledger.PrunedEntry
			for _, index := range c.entries {
				e := &log[index-1]
				*e = removed(*e)
				entries = append(entries, ledger.PrunedEntry{Index: e.Index, Header: e.Header})
			}
			gone, blobs := []string{"none", id(9)}, []canonical.Digest{digest("of none")}
			for _, run := range c.gone {
				gone, blobs = append(gone, id(run)), append(blobs, digest(fmt.Sprint("of ", run)))
			}
			update(t, s, func(tx ledger.Tx) error { return tx.Prune(entries, gone, blobs) })
			view(t, s, func(r ledger.Reader) {
				wantEqual(t, "Runs", []int{c.left}, runs(list(t, r.Runs(ledger.Filter{}))))
				wantEqual(t, "Blobs", []string{fmt.Sprint("of ", c.left)}, texts(list(t, r.Blobs())))
				wantEqual(t, "Entries", log, list(t, r.Entries(0)))
				for _, d := range list(t, r.Deliveries("", late, 9)) {
					if log[d.Entry-1].Pruned() {
						t.Errorf("the delivery of the removed entry %d is left", d.Entry)
					}
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
			if len(entries) == 0 {
				return
			}
			again := []ledger.PrunedEntry{{Index: entries[0].Index, Header: []byte(`{"another":"header"}`)}}
			if err := s.Update(context.Background(), func(tx ledger.Tx) error { return tx.Prune(again, nil, nil) }); err == nil {
				t.Error("an entry can be pruned twice")
			}
			view(t, s, func(r ledger.Reader) { wantEqual(t, "Entries", log, list(t, r.Entries(0))[:len(log)]) })
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
