package storetest

import (
	"context"
	"errors"
	"testing"

	"pgfsm/traces/ledger"
)

// generations checks that the generation at the beginning of a transaction is that at the end of an
// earlier one if nobody wrote in between, and another one if anybody did.
func generations(t *testing.T, h Harness) {
	broken := errors.New("broken")
	n := int64(0)
	write := func(t *testing.T, s ledger.Store) {
		n++ // SQLite does not write a row that stays the same
		update(t, s, func(tx ledger.Tx) error { return tx.PutToken(ledger.Token{ID: "b", Entry: n}) })
	}
	for _, tt := range []struct {
		name    string
		between func(t *testing.T, s, other ledger.Store)
		changes bool
	}{
		{"nothing", func(*testing.T, ledger.Store, ledger.Store) {}, false},
		{"a-read", func(t *testing.T, _, other ledger.Store) { nothingOf(t, other) }, false},
		{"another-store-writes", func(t *testing.T, _, other ledger.Store) { write(t, other) }, true},
		{"another-store-adds-an-entry", func(t *testing.T, _, other ledger.Store) {
			update(t, other, func(tx ledger.Tx) error { return add(tx, entry(2, id(2))) })
		}, true},
		{"the-same-store-writes", func(t *testing.T, s, _ ledger.Store) { write(t, s) }, true},
		{"another-store-rolls-back", func(t *testing.T, _, other ledger.Store) {
			err := other.Update(t.Context(), func(tx ledger.Tx) error {
				return errors.Join(tx.PutToken(ledger.Token{ID: "c"}), broken)
			})
			if !errors.Is(err, broken) {
				t.Errorf("Update() = %v, want %v", err, broken)
			}
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, path := h.fresh(t)
			other := h.open(t, path)
			write(t, other)
			var end, begin ledger.DataVersion
			update(t, s, func(tx ledger.Tx) (err error) {
				if err := add(tx, entry(1, id(1))); err != nil {
					return err
				}
				end, err = tx.DataVersion()
				return err
			})
			tt.between(t, s, other)
			update(t, s, func(tx ledger.Tx) (err error) {
				begin, err = tx.DataVersion()
				return err
			})
			if changed := begin != end; changed != tt.changes {
				t.Errorf("the generation was %v and is %v, want changed %v", end, begin, tt.changes)
			}
		})
	}
}

func nothingOf(t *testing.T, s ledger.Store) {
	view(t, s, func(r ledger.Reader) { list(t, r.Tokens()) })
}

// readsAhead checks that reads that were announced have the same answers within the transaction, also
// after another store or the transaction itself has written what they read.
func readsAhead(t *testing.T, h Harness) {
	s, path := h.fresh(t)
	other := h.open(t, path)
	update(t, s, func(tx ledger.Tx) error {
		return errors.Join(add(tx, entry(1, id(1))), tx.AddRun(request(1)), tx.PutToken(ledger.Token{ID: "a", Name: "ann"}))
	})
	update(t, other, func(tx ledger.Tx) error { return tx.PutToken(ledger.Token{ID: "a", Name: "bob"}) })

	ahead := func(r ledger.Reader) {
		_, _ = r.Token("a")
		_, _ = r.Token("none")
		_, _ = r.LastIndexOf(id(1))
		_, _ = r.ReadHashes([]int64{0})
	}
	err := s.Update(context.Background(), func(tx ledger.Tx) error {
		ahead(tx)
		token, err := tx.Token("a")
		if err != nil || token.Name != "bob" {
			t.Errorf("Token(a) = %v, %v, want that of bob", token, err)
		}
		absent, err := tx.Token("none")
		missing(t, "Token", absent, err)
		if index, err := tx.LastIndexOf(id(1)); err != nil || index != request(1).Entry {
			t.Errorf("LastIndexOf() = %d, %v, want %d", index, err, request(1).Entry)
		}

		if err := tx.PutToken(ledger.Token{ID: "a", Name: "cat"}); err != nil {
			return err
		}
		if token, err := tx.Token("a"); err != nil || token.Name != "cat" {
			t.Errorf("Token(a) = %v, %v after it was put, want that of cat", token, err)
		}
		return nil
	}, ahead)
	if err != nil {
		t.Errorf("Update() = %v", err)
	}
}
