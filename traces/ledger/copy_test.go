package ledger_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/ledgertest"
	"pgfsm/traces/ledger/sqlite"
)

// afterwards is when ledgers are copied: after the archive's last entry.
const afterwards = "2026-11-21T09:45:00.000Z"

// moving is a copy of the tests.
func moving(tb testing.TB) ledger.Move {
	clock := ledgertest.NewClock(tb)
	clock.Set(tb, afterwards)
	return ledger.Move{Target: "sqlite:new.db", By: root, Clock: clock.Now}
}

// openAfterwards opens a ledger at that time.
func openAfterwards(tb testing.TB, s ledger.Store) *fixture {
	tb.Helper()
	clock := ledgertest.NewClock(tb)
	clock.Set(tb, afterwards)
	return fixtureAt(tb, s, clock)
}

func inFile(tb testing.TB, path string) ledger.Store {
	tb.Helper()
	s, err := sqlite.Open(path, sqlite.Options{})
	check.NoError(tb, err)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// prunedArchive is a file with runs of every outcome, some of them pruned, and with hooks. It returns a held and an approved run.
func prunedArchive(tb testing.TB) (path, held, approved string) {
	path = onDisk(tb, func(d *fixture) {
		d.passes(2)
		d.passing()
		d.Clock.Set(tb, "2026-11-21T09:10:00.000Z")
		d.prunes("2026-11-21T09:05:00.000Z")
		d.fill()
		held, _ = d.hold(nil)
		approved, _ = d.approved(nil)
	})
	s, err := sqlite.Open(path, sqlite.Options{})
	check.NoError(tb, err)
	err = s.Update(context.Background(), func(tx ledger.Tx) error {
		return errors.Join(tx.SetNextDelivery("hook-1", 7), tx.SetNextDelivery("hook-2", 9),
			tx.PutDelivery(ledger.Delivery{Entry: 9, Hook: "hook-2", Next: afterwards, State: "waiting", Attempts: 2, Error: "status 500"}))
	})
	check.NoError(tb, errors.Join(err, s.Close()))
	return path, held, approved
}

// TestCopy copies a ledger from a file to a store, and back.
func TestCopy(t *testing.T) {
	path, held, approved := prunedArchive(t)
	from, ctx, m := inFile(t, path), context.Background(), moving(t)
	before := ledgertest.State(t, from)
	want := ledgertest.Rows(t, from)
	target := ledgertest.NewStore(t)
	for range 2 { // the second time changes nothing
		if err := ledger.Copy(ctx, from, target, m); err != nil {
			t.Fatalf("Copy() = %v", err)
		}
	}
	ledgertest.Verify(t, from, &before)
	closed := ledgertest.State(t, from)
	if r := ledgertest.Verify(t, target, &closed); r.Pruned == 0 || r.Size != before.Size+2 {
		t.Errorf("the copy is not whole: %+v", r)
	}
	got := ledgertest.Rows(t, target)
	last := len(got["entries"]) - 2
	for i, kind := range []ledger.Type{ledger.LedgerClosed, ledger.LedgerContinued} {
		if !strings.Contains(got["entries"][last+i], string(kind)) {
			t.Errorf("entry %d from the end is %s, want %s", 2-i, got["entries"][last+i], kind)
		}
	}
	got["entries"] = got["entries"][:last]
	got["hooks"] = slices.DeleteFunc(got["hooks"], func(h string) bool { return h == "copy" }) // it marks the copy
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}

	if err := ledger.Copy(ctx, from, ledgertest.NewStore(t), m); !errors.Is(err, ledger.ErrLedgerClosed) || !strings.Contains(err.Error(), "sqlite:new.db") {
		t.Errorf("a second target: Copy() = %v, want ErrLedgerClosed", err)
	}
	if err := ledger.Copy(ctx, target, from, m); !errors.Is(err, ledger.ErrNotEmpty) {
		t.Errorf("to the source: Copy() = %v, want ErrNotEmpty", err)
	}
	closed = stateOfItself(t, from, m)
	back := inFile(t, filepath.Join(t.TempDir(), "back.db"))
	if err := ledger.Copy(ctx, target, back, m); err != nil {
		t.Fatalf("Copy() back = %v", err)
	}
	ledgertest.Verify(t, back, &closed)

	d := openAfterwards(t, back)
	d.vote(held, d.Approver("dora"), true)
	s := statestest.Find(t, "policy-holds")
	for _, run := range []string{held, approved} {
		if got, err := d.resume(run, world(&s)); err != nil || got.Outcome.State != "answered" {
			t.Errorf("resume(%s) = %+v, %v", run, got.Outcome, err)
		}
	}
	if _, err := d.checked(ledger.VerifyOptions{Checkpoint: &before}); err != nil {
		t.Errorf("Verify() = %v", err)
	}
}

// stateOfItself copies a closed ledger to itself, which changes nothing, and returns its state.
func stateOfItself(t *testing.T, s ledger.Store, m ledger.Move) checkpoint.Checkpoint {
	t.Helper()
	before := ledgertest.State(t, s)
	other := inFile(t, s.(*sqlite.Store).Path())
	if err := ledger.Copy(t.Context(), s, other, m); !errors.Is(err, ledger.ErrLedgerClosed) {
		t.Errorf("to itself: Copy() = %v, want ErrLedgerClosed", err)
	}
	now := ledgertest.State(t, s)
	if now != before {
		t.Errorf("the closed ledger is at %+v, want %+v", now, before)
	}
	return now
}
