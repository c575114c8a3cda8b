package storetest

import (
	"errors"
	"testing"

	"pgfsm/states"
	"pgfsm/traces/ledger"
)

func waiting(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	of := func(run string, change func(*ledger.RunRow)) ledger.RunRow {
		q := ledger.RunRow{
			RunID: run, Kind: states.KindAgent, Actor: "ann", Server: "files", Tool: "read", Arguments: digest("args"), Status: ledger.Pending, Binding: "b",
		}
		if change != nil {
			change(&q)
		}
		return q
	}
	second := of("3", nil)
	update(t, s, func(tx ledger.Tx) error {
		for _, q := range []ledger.RunRow{
			of("4", nil), second, of("1", func(q *ledger.RunRow) { q.Binding = "" }), of("2", func(q *ledger.RunRow) { q.Delivered = late }),
			of("0", func(q *ledger.RunRow) { q.Kind = states.KindCall }), of("00", func(q *ledger.RunRow) { q.Kind = states.KindAsk }),
			of("5", func(q *ledger.RunRow) { q.Actor = "bob" }), of("6", func(q *ledger.RunRow) { q.Arguments = digest("other args") }),
			of("51", func(q *ledger.RunRow) { q.OnBehalfOf = "ben" }), of("52", func(q *ledger.RunRow) { q.OnBehalfOf = "cat" }),
			of("53", func(q *ledger.RunRow) { q.Client = "desk" }),
			of("7", func(q *ledger.RunRow) { q.Server = "mail" }), of("8", func(q *ledger.RunRow) { q.Tool = "write" }),
		} {
			if err := tx.PutRun(q); err != nil {
				return err
			}
		}
		return nil
	})
	look := ledger.RepeatedCall{Actor: "ann", Server: "files", Tool: "read", Arguments: digest("args")}
	for _, tc := range []struct {
		name   string
		change func(*ledger.RepeatedCall)
		want   string // empty: none
	}{
		{"first", func(*ledger.RepeatedCall) {}, "3"},
		{"of-another-actor", func(l *ledger.RepeatedCall) { l.Actor = "bob" }, "5"},
		{"on-behalf-of-a-person", func(l *ledger.RepeatedCall) { l.OnBehalfOf = "ben" }, "51"},
		{"on-behalf-of-another-person", func(l *ledger.RepeatedCall) { l.OnBehalfOf = "cat" }, "52"},
		{"on-behalf-of-nobody-who-asked", func(l *ledger.RepeatedCall) { l.OnBehalfOf = "dan" }, ""},
		{"another-client", func(l *ledger.RepeatedCall) { l.Client = "desk" }, "53"},
		{"other-arguments", func(l *ledger.RepeatedCall) { l.Arguments = digest("other args") }, "6"},
		{"another-server", func(l *ledger.RepeatedCall) { l.Server = "mail" }, "7"},
		{"another-tool", func(l *ledger.RepeatedCall) { l.Tool = "write" }, "8"},
		{"actor-in-other-case", func(l *ledger.RepeatedCall) { l.Actor = "Ann" }, ""},
		{"of-nobody", func(l *ledger.RepeatedCall) { l.Actor = "" }, ""},
		{"nothing", func(l *ledger.RepeatedCall) { *l = ledger.RepeatedCall{} }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := look
			tc.change(&l)
			waits(t, s, l, tc.want)
		})
	}
	second.Delivered, second.Ended, second.Status = late, late, ledger.Executed
	update(t, s, func(tx ledger.Tx) error { return tx.PutRun(second) })
	waits(t, s, look, "4")
	update(t, s, func(tx ledger.Tx) error { return tx.Prune(nil, []string{"4"}, nil) })
	waits(t, s, look, "")
}

func waits(t *testing.T, s ledger.Store, l ledger.RepeatedCall, want string) {
	t.Helper()
	view(t, s, func(r ledger.Reader) {
		run, err := r.FindWaiting(l)
		if run != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("Waiting(%v) = %q, %v, want %q", l, run, err, want)
		}
	})
}

func ofType(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	for i, kind := range []ledger.Type{
		ledger.LogCreated, ledger.MCPPassed, ledger.LedgerPruned, ledger.MCPPassed, ledger.TokenCreated, ledger.LedgerPruned, ledger.TokenCreated,
	} {
		e := entry(int64(i), "")
		e.Type = kind
		update(t, s, func(tx ledger.Tx) error { return add(tx, e) })
	}
	ofRun := entry(7, "a")
	ofRun.Type = ledger.TokenCreated
	update(t, s, func(tx ledger.Tx) error { return add(tx, ofRun) })
	view(t, s, func(r ledger.Reader) {
		for kind, want := range map[ledger.Type][]int64{ // in any order
			ledger.LogCreated: {0}, ledger.LedgerPruned: {2, 5}, ledger.TokenCreated: {4, 6}, ledger.TokenRevoked: nil,
		} {
			wantEqual(t, string(kind), want, indexes(list(t, r.EntriesOfType(kind))))
			e, err := r.LastOfType(kind)
			if want == nil {
				missing(t, "LastOf", e, err)
			} else if err != nil || e.Index != want[len(want)-1] {
				t.Errorf("LastOf(%s) = %d, %v", kind, e.Index, err)
			}
		}
	})
}
