package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgfsm/traces/ledger"
)

// telling checks that what hooks tell is found by its whole key, and bounded by its kind and actor.
func telling(t *testing.T, h Harness) {
	s, path := h.fresh(t)
	other := h.open(t, path)
	row := func(kind, actor string, n int) ledger.Told {
		return ledger.Told{Kind: kind, Actor: actor, Name: fmt.Sprint(n), Value: []byte(`{"a":1}`), Expires: fmt.Sprint("2026-01-02T03:04:0", n)}
	}
	changed := row("call", "ann", 3)
	changed.Value, changed.Expires = []byte(`[2]`), "2026-01-02T03:04:09"
	undone := errors.New("undone")
	for _, tc := range []struct {
		name string
		do   func(ledger.Tx) error
		want string // numbers of calls of ann that are left
	}{
		{"put", func(tx ledger.Tx) (err error) {
			for n := range 6 {
				err = errors.Join(err, tx.PutTold(row("call", "ann", n)), tx.PutTold(row("call", "bob", n)), tx.PutTold(row("session", "ann", n)))
			}
			return err
		}, "012345"},
		{"put-again", func(tx ledger.Tx) error { return tx.PutTold(changed) }, "012345"},
		{"undone", func(tx ledger.Tx) error { return errors.Join(tx.DropTold("call", "ann", "0"), undone) }, "012345"},
		{"dropped", func(tx ledger.Tx) error {
			return errors.Join(tx.DropTold("call", "ann", "0"), tx.DropTold("call", "ann", "none"))
		}, "12345"},
		{"nothing-to-limit", func(tx ledger.Tx) error { return tx.LimitTold("call", "ann", "2026-01-02T03:04:00", 5) }, "12345"},
		{"expired", func(tx ledger.Tx) error { return tx.LimitTold("call", "ann", "2026-01-02T03:04:01", 5) }, "2345"},
		{"too-many", func(tx ledger.Tx) error { return tx.LimitTold("call", "ann", "", 2) }, "35"},
		{"too-many-of-one-time", func(tx ledger.Tx) (err error) {
			for n := range 6 {
				together := changed
				together.Name = fmt.Sprint(n)
				err = errors.Join(err, tx.PutTold(together))
			}
			return errors.Join(err, tx.LimitTold("call", "ann", "", 2))
		}, "45"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := s.Update(context.Background(), tc.do); err != nil && !errors.Is(err, undone) {
				t.Fatal(err)
			}
			left := ""
			view(t, other, func(r ledger.Reader) {
				for n := range 6 {
					want := row("call", "ann", n)
					if n == 3 && tc.name != "put" || tc.name == "too-many-of-one-time" {
						want = changed
						want.Name = fmt.Sprint(n)
					}
					got, err := r.ReadTold("call", "ann", fmt.Sprint(n))
					if errors.Is(err, ledger.ErrNotFound) {
						continue
					}
					wantEqual(t, "Told", want, got)
					left += got.Name
					for _, of := range []ledger.Told{row("call", "bob", n), row("session", "ann", n)} {
						got, err := r.ReadTold(of.Kind, of.Actor, of.Name)
						wantEqual(t, "Told", of, got)
						if err != nil {
							t.Errorf("Told: %v", err)
						}
					}
				}
			})
			wantEqual(t, "what is left", tc.want, left)
		})
	}
}
