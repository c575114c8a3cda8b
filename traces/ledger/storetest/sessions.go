package storetest

import (
	"context"
	"errors"
	"iter"
	"testing"

	"pgfsm/traces/ledger"
)

func sessions(t *testing.T, h Harness) {
	s, path := h.fresh(t)
	other := h.open(t, path)
	full := filled[ledger.Session](t)
	used := full
	used.Used = late
	link := ledger.Session{Secret: "a", Kind: ledger.SessionLink}
	undone := errors.New("undone")
	for _, tc := range []struct {
		name string
		do   func(ledger.Tx) error
		want []ledger.Session
	}{
		{"put", func(tx ledger.Tx) error { return tx.PutSession(full) }, []ledger.Session{full}},
		{"put-again", func(tx ledger.Tx) error { return tx.PutSession(used) }, []ledger.Session{used}},
		{"ordered", func(tx ledger.Tx) error { return tx.PutSession(link) }, []ledger.Session{link, used}},
		{"undone", func(tx ledger.Tx) error { return errors.Join(tx.DropSession("a"), undone) }, []ledger.Session{link, used}},
		{"dropped", func(tx ledger.Tx) error { return errors.Join(tx.DropSession("a"), tx.DropSession("none")) }, []ledger.Session{used}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := s.Update(context.Background(), tc.do); err != nil && !errors.Is(err, undone) {
				t.Fatal(err)
			}
			wantEqual(t, "Sessions", tc.want, collect(t, other, func(r ledger.Reader) iter.Seq2[ledger.Session, error] { return r.Sessions() }))
		})
	}
	view(t, other, func(r ledger.Reader) {
		got, err := r.Session(used.Secret)
		wantEqual(t, "Session", used, got)
		if err != nil {
			t.Errorf("Session: %v", err)
		}
		got, err = r.Session("a")
		missing(t, "Session", got, err)
	})
}
