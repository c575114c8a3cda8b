package ledger_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// activity reads what happened in a period before now.
func activity(f *ledgertest.Fixture, period time.Duration) (a ledger.Activity) {
	f.TB.Helper()
	now := f.Clock.Now()
	f.Inspect(func(r ledger.Reader) (err error) {
		a, err = ledger.ReadActivity(r, now.Add(-period).Format(policy.TimeForm), now.Format(policy.TimeForm))
		return err
	})
	return a
}

// TestActivityOfAnEmptyLedger: there is nothing to say.
func TestActivityOfAnEmptyLedger(t *testing.T) {
	a := activity(ledgertest.New(t), time.Hour)
	if a.Counts != nil || a.Partial || a.First != "" || a.Active != nil || a.Waits.Pending != 0 || a.Waits.Decided != nil {
		t.Errorf("%+v", a)
	}
}

// TestWaits: a wait lasts from the question to the vote that decides. The requester's withdrawal is no decision of an approver.
func TestWaits(t *testing.T) {
	f := ledgertest.New(t)
	by, second := f.Approver(alice), f.Approver(bob)
	before := f.Hold(1)
	f.Clock.Add(20 * time.Minute)
	f.Cast(ledgertest.Ballot(before, by)) // requested before the period
	f.Clock.Add(61 * time.Minute)
	for _, wait := range []time.Duration{3 * time.Minute, time.Minute, 2 * time.Minute} {
		q := f.Hold(1)
		f.Clock.Add(wait)
		f.Cast(ledgertest.Ballot(q, by))
	}
	two := f.Hold(2)
	f.Clock.Add(time.Minute)
	f.Cast(ledgertest.Ballot(two, by))
	f.Clock.Add(9 * time.Minute)
	denial := ledgertest.Ballot(two, second)
	denial.Approve, denial.Reason = false, "no"
	f.Cast(denial)
	back := f.HoldBy("local:"+carol, ledgertest.Holding(1))
	check.NoError(t, f.Withdraw(t.Context(), back.RunID, ledger.LocalUser("local:"+carol)))
	oldest := f.Hold(1)
	f.Clock.Add(time.Minute)
	f.Hold(1)
	w := activity(f, time.Hour).Waits
	if want := []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute, 10 * time.Minute}; !slices.Equal(w.Decided, want) {
		t.Errorf("waits %v, want %v", w.Decided, want)
	}
	if w.Pending != 2 || w.Oldest != oldest.At || w.Partial || w.MorePending {
		t.Errorf("%+v", w)
	}
	f.Clock.Add(2 * time.Hour) // both have expired, and nobody has recorded that
	if w := activity(f, 24*time.Hour).Waits; w.Pending != 0 || w.Oldest != "" || len(w.Decided) != 5 {
		t.Errorf("%+v", w)
	}
}

// TestActivityIsBounded: it says so if a period has more runs, or more held calls, than it reads.
func TestActivityIsBounded(t *testing.T) {
	const at = "2026-01-01T10:00:00.000Z"
	for _, tc := range []struct {
		name            string
		runs, before    int
		status          ledger.Status
		partial, waits  bool
		pending, counts int
	}{
		{"few", 3, 0, ledger.Executed, false, false, 0, 3},
		{"more-than-are-counted", ledger.MaxRecent + 1, 0, ledger.Denied, true, false, 0, ledger.MaxRecent},
		{"more-before-the-period", ledger.MaxRecent - 1, 9, ledger.Denied, false, false, 0, ledger.MaxRecent - 1},
		{"more-held-than-are-read", ledger.MaxWaits + 1, 0, ledger.Pending, false, true, ledger.MaxWaits + 1, ledger.MaxWaits + 1},
		{"more-pending-than-are-read", ledger.MaxPending + 1, 0, ledger.Pending, false, true, ledger.MaxPending, ledger.MaxPending + 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			store := ledgertest.NewStore(t)
			f := ledgertest.Open(t, store, ledgertest.NewClock(t))
			f.Clock.Set(t, "2026-01-01T10:30:00.000Z")
			err := store.Update(t.Context(), func(tx ledger.Tx) error {
				for i := range tc.before + tc.runs {
					q := ledger.RunRow{RunID: fmt.Sprintf("00000000-0000-7000-8000-%012d", i), First: int64(i), Bundle: canonical.Sum("b", nil), At: at, Updated: at, Status: tc.status, Expires: "2026-01-01T11:00:00.000Z"}
					if i < tc.before {
						q.At = "2026-01-01T09:00:00.000Z"
					}
					if q.Status == ledger.Pending {
						q.Binding = canonical.Sum("b", nil)
					}
					if err := ledgertest.ReplaceRun(tx, q); err != nil {
						return err
					}
				}
				return nil
			})
			check.NoError(t, err)
			a := activity(f, time.Hour)
			n := 0
			for _, c := range a.Counts {
				n += c.Runs
			}
			if a.Partial != tc.partial || n != tc.counts || a.First != at || a.Waits.Partial != tc.waits || a.Waits.Pending != tc.pending ||
				a.Waits.MorePending != (tc.runs > ledger.MaxPending && tc.status == ledger.Pending) {
				t.Errorf("%d runs, %+v", n, a)
			}
		})
	}
}
