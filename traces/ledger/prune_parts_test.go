package ledger_test

import (
	"errors"
	"fmt"
	"testing"

	"pgfsm/policy"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// TestPruneInParts prunes with many small transactions, of which one fails: what is left verifies, the calls of tasks are still counted, and another
// prune removes the rest.
func TestPruneInParts(t *testing.T) {
	boom := errors.New("the disk is gone")
	const before, atOnce, parts = "2026-11-21T09:30:00.000Z", 4, 6
	for failing := range parts + 1 {
		t.Run(fmt.Sprint("failing-", failing), func(t *testing.T) {
			d := newFixture(t)
			store := d.Store
			held, s := d.hold(nil) // it ends among the others
			d.must(d.granted("policy-allows", "one", 1), "")
			d.passes(4)
			d.passing()
			d.vote(held, d.Approver("dora"), true)
			if _, err := d.resume(held, world(s)); err != nil {
				t.Fatal(err)
			}
			d.passing()
			d.passes(3)
			left, _ := d.hold(nil)
			d.must(d.granted("policy-allows", "two", 1), "")
			d.Clock.Set(t, before)
			first := d.checkpoint()

			other := store.Open()
			if failing > 0 {
				other.Fail = ledgertest.FailAt(ledgertest.Commit, failing, boom)
			}
			done, err := fixtureAt(t, other, d.Clock).PruneAtOnce(t.Context(), before, root, atOnce)
			if fails := failing > 0; fails != errors.Is(err, boom) {
				t.Fatalf("PruneAtOnce() = %+v, %v", done, err)
			}
			if _, err := d.checked(ledger.VerifyOptions{Checkpoint: &first}); err != nil {
				t.Errorf("after %+v: Verify() = %v", done, err)
			}
			for _, task := range []string{"one", "two"} {
				d.must(d.granted("policy-allows", task, 1), policy.CodeGrantExhausted)
			}
			rest, err := d.PruneAtOnce(t.Context(), before, root, atOnce)
			if entries, runs := done.Entries+rest.Entries, done.Runs+rest.Runs; err != nil || entries != 33 || runs != 10 || done.Kept != 1 {
				t.Errorf("PruneAtOnce() = %+v, then %+v, %v", done, rest, err)
			}
			if q := d.Run(left); q.Status != ledger.Pending {
				t.Errorf("the run that has not ended is %+v", q)
			}
			d.Clock.Set(t, "2026-11-21T12:00:00.000Z")
			d.prunes("2026-11-21T11:00:00.000Z")
			d.must(d.granted("policy-allows", "one", 1), policy.CodeGrantExhausted)
			n := 0
			for _, e := range d.Events(0) {
				if e.Type == ledger.LedgerPruned {
					n++
				}
			}
			if n < parts {
				t.Errorf("%d transactions removed all, want at least %d", n, parts)
			}
		})
	}
}

// meanwhile is a process that does something before its nth transaction begins.
func (d *fixture) meanwhile(nth int, do func()) *fixture {
	other := d.Store.Open()
	other.Fail = func(at ledgertest.Op, n int) error {
		if at == ledgertest.Begin && n == nth {
			do()
		}
		return nil
	}
	return fixtureAt(d.TB, other, d.Clock)
}

// TestPruneWhileOthersWrite: an outcome that is delivered after the plan keeps its run and ends the prune, and what was removed before stays removed.
func TestPruneWhileOthersWrite(t *testing.T) {
	d := newFixture(t)
	d.passes(3)
	held, s := d.hold(nil)
	d.vote(held, d.Approver("dora"), true)
	if _, err := d.resume(held, world(s)); err != nil {
		t.Fatal(err)
	}
	d.passes(3)
	const before = "2026-11-21T09:30:00.000Z"
	d.Clock.Set(t, before)
	other := d.meanwhile(2, func() { d.delivers(held, ledger.DeliveryWays()[0]) })
	done, err := other.PruneAtOnce(t.Context(), before, root, 4)
	if !errors.Is(err, ledger.ErrPruning) || done.Runs == 0 {
		t.Errorf("PruneAtOnce() = %+v, %v", done, err)
	}
	if q := d.Run(held); q.Delivered == "" {
		t.Errorf("the run is %+v", q)
	}
	d.sound()
	if rest, err := d.PruneAtOnce(t.Context(), before, root, 4); err != nil || done.Runs+rest.Runs != 6 || rest.Kept != 1 {
		t.Errorf("once more: PruneAtOnce() = %+v, %v", rest, err)
	}
}

// TestPruneBesideANewRun: a run that begins after the plan keeps what it shares with runs that go.
func TestPruneBesideANewRun(t *testing.T) {
	d := newFixture(t)
	d.passes(1)
	d.Clock.Set(t, "2026-11-21T09:50:00.000Z")
	other := d.meanwhile(1, func() { d.passes(1) })
	if done, err := other.Prune(t.Context(), ledger.PruneRequest{Before: "2026-11-21T09:50:00.000Z", Unstated: true}, root); err != nil || done.Runs != 1 {
		t.Errorf("Prune() = %+v, %v", done, err)
	}
	if report, err := d.checked(ledger.VerifyOptions{}); err != nil || report.Requests != 1 || report.Blobs == 0 {
		t.Errorf("Verify() = %+v, %v", report, err)
	}
}
