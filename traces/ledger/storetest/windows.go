package storetest

import (
	"testing"

	"pgfsm/traces/ledger"
)

// windows checks the filter Since: it matches requests that arrived or were sent since a time, whichever is later, and all open ones.
func windows(t *testing.T, h Harness) {
	const before, after = "2026-01-01T23:59:59.000Z", "2026-01-02T00:00:01.000Z" // one second before and after later
	s, _ := h.fresh(t)
	update(t, s, func(tx ledger.Tx) error {
		for _, r := range []ledger.RunRow{
			{RunID: "1", At: early, Status: ledger.Pending, Task: "t1"},                                     // held for long
			{RunID: "2", At: early, Status: ledger.Executed, Task: "t1", Sent: later, Ended: late},          // then sent
			{RunID: "3", At: later, Status: ledger.Executed, Task: "t1", Sent: early, Ended: late},          // sent by a slow clock
			{RunID: "4", At: early, Status: ledger.Denied, Task: "t1", Ended: late},                         // never sent
			{RunID: "5", At: early, Status: ledger.Executed, Task: "t1", Sent: before, Ended: late},         //
			{RunID: "6", At: early, Status: ledger.Allowed, Task: "t2", Sent: early},                        // in flight
			{RunID: "7", At: later, Status: ledger.Executed, Task: "t2", Sent: later, Ended: later},         //
			{RunID: "8", At: later, Status: ledger.Denied, Task: "t2", Ended: later},                        //
			{RunID: "9", At: before, Status: ledger.Indeterminate, Task: "t2", Sent: before, Ended: before}, //
		} {
			r.Actor, r.Server, r.Tool = "ann", "files", "read"
			if err := tx.PutRun(r); err != nil {
				return err
			}
		}
		return nil
	})
	for _, tc := range []struct {
		name string
		f    ledger.Filter
		want []string
	}{
		{"a-second-before", ledger.Filter{Since: before}, []string{"1", "2", "3", "5", "6", "7", "8", "9"}},
		{"at-the-second", ledger.Filter{Since: later}, []string{"1", "2", "3", "6", "7", "8"}},
		{"a-second-behind", ledger.Filter{Since: after}, []string{"1", "6"}},
		{"what-is-open-has-no-time", ledger.Filter{Since: "9999-12-31T23:59:59.000Z"}, []string{"1", "6"}},
		{"counted", ledger.Filter{Since: later, Counted: true}, []string{"1", "2", "3", "6", "7"}},
		{"counted-of-actor", ledger.Filter{Since: later, Counted: true, Actor: "ann"}, []string{"1", "2", "3", "6", "7"}},
		{
			"counted-calls-of-actor", ledger.Filter{Since: after, Counted: true, Actor: "ann", Server: "files", Tool: "read"},
			[]string{"1", "6"},
		},
		{"counted-of-task", ledger.Filter{Since: before, Counted: true, Task: "t1"}, []string{"1", "2", "3", "5"}},
		{
			"counted-calls-of-task", ledger.Filter{Since: later, Counted: true, Task: "t1", Server: "files", Tool: "read"},
			[]string{"1", "2", "3"},
		},
		{"open", ledger.Filter{Since: late, Open: true}, []string{"1", "6"}},
		{"newest-limit", ledger.Filter{Since: later, Counted: true, Newest: true, Limit: 2}, []string{"7", "6"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			view(t, s, func(r ledger.Reader) { wantEqual(t, "runs", tc.want, runs(list(t, r.Runs(tc.f)))) })
		})
	}
}

// counts checks that the newest requests are counted by the hour, and earlier ones together.
func counts(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	update(t, s, func(tx ledger.Tx) error {
		for _, r := range []ledger.RunRow{
			{RunID: "1", At: "2026-01-01T08:00:00.000Z", Status: ledger.Failed, Code: "left out"},
			{RunID: "2", At: "2026-01-01T09:59:59.000Z", Status: ledger.Executed},
			{RunID: "3", At: "2026-01-01T09:00:00.000Z", Status: ledger.Executed},
			{RunID: "4", At: "2026-01-01T10:00:00.000Z", Status: ledger.Executed},
			{RunID: "5", At: "2026-01-01T10:59:59.000Z", Status: ledger.Executed},
			{RunID: "6", At: "2026-01-01T10:30:00.000Z", Status: ledger.Denied, Code: "b"},
			{RunID: "7", At: "2026-01-01T10:30:00.000Z", Status: ledger.Denied, Code: "a"},
			{RunID: "8", At: "2026-01-01T11:00:00.000Z", Status: ledger.Denied, Code: "b"},
		} {
			if err := tx.PutRun(r); err != nil {
				return err
			}
		}
		return nil
	})
	view(t, s, func(r ledger.Reader) {
		wantEqual(t, "counts", []ledger.Count{
			{Status: ledger.Executed, First: "2026-01-01T09:00:00.000Z", Runs: 2},
			{At: "2026-01-01T10", Status: ledger.Denied, Code: "a", First: "2026-01-01T10:30:00.000Z", Runs: 1},
			{At: "2026-01-01T10", Status: ledger.Denied, Code: "b", First: "2026-01-01T10:30:00.000Z", Runs: 1},
			{At: "2026-01-01T10", Status: ledger.Executed, First: "2026-01-01T10:00:00.000Z", Runs: 2},
			{At: "2026-01-01T11", Status: ledger.Denied, Code: "b", First: "2026-01-01T11:00:00.000Z", Runs: 1},
		}, list(t, r.Counts(7, "2026-01-01T10:00:00.000Z", 13)))
		wantEqual(t, "counts of the newest", []ledger.Count{
			{At: "2026-01-01", Status: ledger.Denied, Code: "b", First: "2026-01-01T11:00:00.000Z", Runs: 1},
		}, list(t, r.Counts(1, "", 10)))
		wantEqual(t, "counts of a time without requests", 1, len(list(t, r.Counts(2, "2027", 10)))-1)
	})
}
