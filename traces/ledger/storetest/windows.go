package storetest

import (
	"testing"
	"time"

	"pgfsm/traces/ledger"
)

// windows checks the filter Since: it matches requests that arrived or were sent since a time, whichever is later, and all open ones.
func windows(t *testing.T, h Harness) {
	const before, after = "2026-01-01T23:59:59.000Z", "2026-01-02T00:00:01.000Z" // one second before and after later
	s, _ := h.fresh(t)
	update(t, s, func(tx ledger.Tx) error {
		for _, r := range []ledger.RunRow{
			row(1, ledger.RunRow{At: early, Status: ledger.Pending, Task: "t1"}),                                     // held for long
			row(2, ledger.RunRow{At: early, Status: ledger.Executed, Task: "t1", Sent: later, Ended: late}),          // then sent
			row(3, ledger.RunRow{At: later, Status: ledger.Executed, Task: "t1", Sent: early, Ended: late}),          // sent by a slow clock
			row(4, ledger.RunRow{At: early, Status: ledger.Denied, Task: "t1", Ended: late}),                         // never sent
			row(5, ledger.RunRow{At: early, Status: ledger.Executed, Task: "t1", Sent: before, Ended: late}),         //
			row(6, ledger.RunRow{At: early, Status: ledger.Allowed, Task: "t2", Sent: early}),                        // in flight
			row(7, ledger.RunRow{At: later, Status: ledger.Executed, Task: "t2", Sent: later, Ended: later}),         //
			row(8, ledger.RunRow{At: later, Status: ledger.Denied, Task: "t2", Ended: later}),                        //
			row(9, ledger.RunRow{At: before, Status: ledger.Indeterminate, Task: "t2", Sent: before, Ended: before}), //
		} {
			r.Actor, r.Server, r.Tool = "ann", "files", "read"
			if err := tx.AddRun(r); err != nil {
				return err
			}
		}
		return nil
	})
	for _, tc := range []struct {
		name string
		f    ledger.Filter
		want []int
	}{
		{"a-second-before", ledger.Filter{Since: before}, []int{1, 2, 3, 5, 6, 7, 8, 9}},
		{"at-the-second", ledger.Filter{Since: later}, []int{1, 2, 3, 6, 7, 8}},
		{"a-second-behind", ledger.Filter{Since: after}, []int{1, 6}},
		{"what-is-open-has-no-time", ledger.Filter{Since: "9999-12-31T23:59:59.000Z"}, []int{1, 6}},
		{"counted", ledger.Filter{Since: later, Counted: true}, []int{1, 2, 3, 6, 7}},
		{"counted-of-actor", ledger.Filter{Since: later, Counted: true, Actor: "ann"}, []int{1, 2, 3, 6, 7}},
		{
			"counted-calls-of-actor", ledger.Filter{Since: after, Counted: true, Actor: "ann", Server: "files", Tool: "read"},
			[]int{1, 6},
		},
		{"counted-of-task", ledger.Filter{Since: before, Counted: true, Task: "t1"}, []int{1, 2, 3, 5}},
		{
			"counted-calls-of-task", ledger.Filter{Since: later, Counted: true, Task: "t1", Server: "files", Tool: "read"},
			[]int{1, 2, 3},
		},
		{"open", ledger.Filter{Since: late, Open: true}, []int{1, 6}},
		{"newest-limit", ledger.Filter{Since: later, Counted: true, Newest: true, Limit: 2}, []int{7, 6}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			view(t, s, func(r ledger.Reader) { wantEqual(t, "runs", tc.want, runs(list(t, r.Runs(tc.f)))) })
		})
	}
}

// counts checks that the newest requests are counted by intervals, and earlier ones together.
func counts(t *testing.T, h Harness) {
	s, _ := h.fresh(t)
	update(t, s, func(tx ledger.Tx) error {
		return addRuns(tx,
			row(1, ledger.RunRow{At: "2026-01-01T08:00:00.000Z", Status: ledger.Failed, Code: "left out"}),
			row(2, ledger.RunRow{At: "2026-01-01T09:59:59.999Z", Status: ledger.Executed}),
			row(3, ledger.RunRow{At: "2026-01-01T09:00:00.000Z", Status: ledger.Executed}),
			row(4, ledger.RunRow{At: "2026-01-01T10:00:00.000Z", Status: ledger.Executed}),
			row(5, ledger.RunRow{At: "2026-01-01T10:59:59.999Z", Status: ledger.Executed}),
			row(6, ledger.RunRow{At: "2026-01-01T10:30:00.000Z", Status: ledger.Denied, Code: "b"}),
			row(7, ledger.RunRow{At: "2026-01-01T10:30:00.000Z", Status: ledger.Denied, Code: "a"}),
			row(8, ledger.RunRow{At: "2026-01-01T11:00:00.000Z", Status: ledger.Denied, Code: "b"}))
	})
	const ten, eleven = "2026-01-01T10:00:00.000Z", "2026-01-01T11:00:00.000Z"
	view(t, s, func(r ledger.Reader) {
		wantEqual(t, "counts", []ledger.Count{
			{Status: ledger.Executed, First: "2026-01-01T09:00:00.000Z", Runs: 2},
			{At: ten, Status: ledger.Denied, Code: "a", First: "2026-01-01T10:30:00.000Z", Runs: 1},
			{At: ten, Status: ledger.Denied, Code: "b", First: "2026-01-01T10:30:00.000Z", Runs: 1},
			{At: ten, Status: ledger.Executed, First: ten, Runs: 2},
			{At: eleven, Status: ledger.Denied, Code: "b", First: eleven, Runs: 1},
		}, list(t, r.Counts(7, ten, time.Hour)))
		wantEqual(t, "counts of the newest", []ledger.Count{
			{At: early, Status: ledger.Denied, Code: "b", First: eleven, Runs: 1},
		}, list(t, r.Counts(1, "", 24*time.Hour)))
		wantEqual(t, "counts of a time without requests", []ledger.Count{
			{Status: ledger.Denied, Code: "a", First: "2026-01-01T10:30:00.000Z", Runs: 1},
			{Status: ledger.Denied, Code: "b", First: eleven, Runs: 1},
		}, list(t, r.Counts(2, late, time.Hour)))
	})
}
