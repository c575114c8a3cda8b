package storetest

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/states"
	"pgfsm/traces/ledger"
)

func waiting(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	of := func(run int, change func(*ledger.RunRow)) ledger.RunRow {
		q := row(run, ledger.RunRow{
			Kind: states.KindAgent, Actor: "ann", Server: "files", Tool: "read", Arguments: digest("args"), Status: ledger.Pending, Binding: digest("b"),
		})
		if change != nil {
			change(&q)
		}
		return q
	}
	second := of(30, nil)
	update(t, s, func(tx ledger.Tx) error {
		return addRuns(tx,
			of(40, nil), second, of(1, func(q *ledger.RunRow) { q.Binding = "" }), of(2, func(q *ledger.RunRow) { q.Delivered = late }),
			of(9, func(q *ledger.RunRow) { q.Kind = states.KindCall }), of(0, func(q *ledger.RunRow) { q.Kind = states.KindAsk }),
			of(5, func(q *ledger.RunRow) { q.Actor = "bob" }), of(6, func(q *ledger.RunRow) { q.Arguments = digest("other args") }),
			of(51, func(q *ledger.RunRow) { q.OnBehalfOf = "ben" }), of(52, func(q *ledger.RunRow) { q.OnBehalfOf = "cat" }),
			of(53, func(q *ledger.RunRow) { q.Client = "desk" }),
			of(60, func(q *ledger.RunRow) { q.Kind, q.Session, q.Sent = states.KindHook, "claude/s-1", late }),
			of(61, func(q *ledger.RunRow) { q.Kind, q.Session = states.KindHook, "claude/s-1" }),
			of(62, func(q *ledger.RunRow) { q.Kind = states.KindEvaluation }),
			of(7, func(q *ledger.RunRow) { q.Server = "mail" }), of(8, func(q *ledger.RunRow) { q.Tool = "write" }))
	})
	look := ledger.RepeatedCall{Actor: "ann", Server: "files", Tool: "read", Arguments: digest("args")}
	for _, tc := range []struct {
		name   string
		change func(*ledger.RepeatedCall)
		want   int // 0: none
	}{
		{"first", func(*ledger.RepeatedCall) {}, 30},
		{"of-another-actor", func(l *ledger.RepeatedCall) { l.Actor = "bob" }, 5},
		{"on-behalf-of-a-person", func(l *ledger.RepeatedCall) { l.OnBehalfOf = "ben" }, 51},
		{"on-behalf-of-another-person", func(l *ledger.RepeatedCall) { l.OnBehalfOf = "cat" }, 52},
		{"on-behalf-of-nobody-who-asked", func(l *ledger.RepeatedCall) { l.OnBehalfOf = "dan" }, 0},
		{"another-client", func(l *ledger.RepeatedCall) { l.Client = "desk" }, 53},
		{"other-arguments", func(l *ledger.RepeatedCall) { l.Arguments = digest("other args") }, 6},
		{"another-server", func(l *ledger.RepeatedCall) { l.Server = "mail" }, 7},
		{"another-tool", func(l *ledger.RepeatedCall) { l.Tool = "write" }, 8},
		{"actor-in-other-case", func(l *ledger.RepeatedCall) { l.Actor = "Ann" }, 0},
		{"of-a-hook", func(l *ledger.RepeatedCall) { l.Kind, l.Session = states.KindHook, "claude/s-1" }, 61},
		{"of-another-session", func(l *ledger.RepeatedCall) { l.Kind, l.Session = states.KindHook, "claude/s-2" }, 0},
		{"of-an-evaluation", func(l *ledger.RepeatedCall) { l.Kind = states.KindEvaluation }, 62},
		{"of-nobody", func(l *ledger.RepeatedCall) { l.Actor = "" }, 0},
		{"nothing", func(l *ledger.RepeatedCall) { *l = ledger.RepeatedCall{} }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := look
			tc.change(&l)
			waits(t, s, l, tc.want)
		})
	}
	second.Delivered, second.Ended, second.Status = late, late, ledger.Executed
	update(t, s, func(tx ledger.Tx) error { return tx.PutRun(second) })
	waits(t, s, look, 40)
	update(t, s, func(tx ledger.Tx) error { return tx.Prune(nil, []string{id(40)}, nil) })
	waits(t, s, look, 0)
}

func waits(t *testing.T, s ledger.Store, l ledger.RepeatedCall, want int) {
	t.Helper()
	view(t, s, func(r ledger.Reader) {
		run, err := r.FindWaiting(l)
		if found := err == nil; found != (want > 0) || found && run != id(want) || !found && !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("FindWaiting(%v) = %q, %v, want the run %d", l, run, err, want)
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
	for i, session := range []string{"claude/1", "claude/2", "claude/1"} {
		e := entry(int64(7+i), "")
		e.Type, e.Body = ledger.PromptCaptured, jsontext.Value(`{"events":[{"session":"`+session+`","text":"\\u0000 \u0000"}]}`)
		update(t, s, func(tx ledger.Tx) error { return add(tx, e) })
	}
	gone := entry(10, "")
	gone.Type = ledger.LedgerPruned
	update(t, s, func(tx ledger.Tx) error { return add(tx, removed(gone), entry(11, id(1))) })
	view(t, s, func(r ledger.Reader) {
		wantEqual(t, "prompts", []int64{7, 9}, indexes(list(t, r.Prompts("claude/1"))))
		wantEqual(t, "prompts of another session", []int64(nil), indexes(list(t, r.Prompts("claude"))))
		for kind, want := range map[ledger.Type][]int64{ // in any order
			ledger.LogCreated: {0}, ledger.LedgerPruned: {2, 5}, ledger.TokenCreated: {4, 6}, ledger.TokenRevoked: nil,
		} {
			wantEqual(t, string(kind), want, indexes(list(t, r.EntriesOfType(kind, 0))))
			wantEqual(t, string(kind)+" from 5 on", slices.DeleteFunc(slices.Clone(want), func(n int64) bool { return n < 5 }), indexes(list(t, r.EntriesOfType(kind, 5))))
			e, err := r.LastOfType(kind)
			if want == nil {
				missing(t, "LastOf", e, err)
			} else if err != nil || e.Index != want[len(want)-1] {
				t.Errorf("LastOf(%s) = %d, %v", kind, e.Index, err)
			}
		}
	})
}
