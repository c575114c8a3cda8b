package ledger_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/ledgertest"
	"pgfsm/traces/ledger/sqlite"
	"pgfsm/traces/ledger/storetest"
)

// afterwards is when ledgers are copied: after the archive's last entry.
const afterwards = "2026-11-21T09:45:00Z"

// moving is a copy of the tests.
func moving(tb testing.TB) ledger.Move {
	clock := ledgertest.NewClock(tb)
	clock.Set(tb, afterwards)
	return ledger.Move{Target: "sqlite:new.db", By: root, Clock: clock.Now}
}

// kinds of stores, each with a function that opens a new one.
var kinds = map[string]func(testing.TB) ledger.Store{
	"memory": func(testing.TB) ledger.Store { return storetest.NewMemory() },
	"sqlite": func(tb testing.TB) ledger.Store { return inFile(tb, filepath.Join(tb.TempDir(), "new.db")) },
}

func inFile(tb testing.TB, path string) ledger.Store {
	tb.Helper()
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// clone is a copy of a file.
func clone(tb testing.TB, path string) string {
	tb.Helper()
	text, err := os.ReadFile(path)
	to := filepath.Join(tb.TempDir(), "pgfsm.db")
	if err := errors.Join(err, os.WriteFile(to, text, 0o600)); err != nil {
		tb.Fatal(err)
	}
	return to
}

// allRows are all rows of a store that a copy has, as text.
func allRows(tb testing.TB, s ledger.Store) (all map[string][]string) {
	tb.Helper()
	all = make(map[string][]string)
	err := s.View(context.Background(), func(r ledger.Reader) error {
		return errors.Join(
			texts(all, "entries", r.Entries(0)), texts(all, "blobs", r.Blobs()), texts(all, "requests", r.Requests(ledger.Filter{})),
			texts(all, "tokens", r.Tokens()), texts(all, "deliveries", r.Deliveries("~", 1000)), texts(all, "hooks", r.Hooks()))
	})
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

func texts[T any](all map[string][]string, of string, rows iter.Seq2[T, error]) error {
	for row, err := range rows {
		if err != nil {
			return err
		}
		all[of] = append(all[of], cmp.Diff(nil, row))
	}
	return nil
}

// checkStore verifies the ledger of a store, its projections, and that it contains a checkpoint.
func checkStore(tb testing.TB, s ledger.Store, c *checkpoint.Checkpoint) (report ledger.Report) {
	tb.Helper()
	ctx := context.Background()
	err := s.View(ctx, func(r ledger.Reader) (err error) {
		if report, err = ledger.Verify(ctx, r, ledger.VerifyOptions{Checkpoint: c}); err != nil {
			return err
		}
		different, err := ledger.Rebuild(ctx, r, nil)
		if len(different) > 0 {
			tb.Errorf("rows differ: %v", different)
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return report
}

func stateOf(tb testing.TB, s ledger.Store) (c checkpoint.Checkpoint) {
	tb.Helper()
	err := s.View(context.Background(), func(r ledger.Reader) (err error) {
		c, err = ledger.TakeCheckpoint(r)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// prunedArchive is a file with runs of every outcome, some of them pruned, and with hooks. It returns a held and an approved run.
func prunedArchive(tb testing.TB) (path, held, approved string) {
	path = onDisk(tb, func(d *desk) {
		d.passes(2)
		d.passing()
		d.Clock.Set(tb, "2026-11-21T09:10:00Z")
		d.prunes("2026-11-21T09:05:00Z")
		d.fill()
		held, _ = d.hold(nil)
		approved, _ = d.approved(nil)
	})
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	err = s.Update(context.Background(), func(tx ledger.Tx) error {
		return errors.Join(tx.SetDelivered("hook-1", 7), tx.SetDelivered("hook-2", 9),
			tx.PutDelivery(ledger.Delivery{Entry: 9, Hook: "hook-2", Next: afterwards, State: "waiting", Attempts: 2, Error: "status 500"}))
	})
	if err := errors.Join(err, s.Close()); err != nil {
		tb.Fatal(err)
	}
	return path, held, approved
}

// TestCopy copies a ledger from each kind of store to each, and back.
func TestCopy(t *testing.T) {
	path, held, approved := prunedArchive(t)
	for to, open := range kinds {
		t.Run("sqlite-to-"+to, func(t *testing.T) {
			from, ctx, m := inFile(t, clone(t, path)), context.Background(), moving(t)
			before := stateOf(t, from)
			want := allRows(t, from)
			target := open(t)
			for range 2 { // the second time changes nothing
				if err := ledger.Copy(ctx, from, target, m); err != nil {
					t.Fatalf("Copy() = %v", err)
				}
			}
			checkStore(t, from, &before)
			closed := stateOf(t, from)
			if r := checkStore(t, target, &closed); r.Pruned == 0 || r.Size != before.Size+2 {
				t.Errorf("the copy is not whole: %+v", r)
			}
			got := allRows(t, target)
			last := len(got["entries"]) - 2
			for i, kind := range []ledger.Type{ledger.LedgerClosed, ledger.LedgerContinued} {
				if !strings.Contains(got["entries"][last+i], string(kind)) {
					t.Errorf("entry %d from the end is %s, want %s", 2-i, got["entries"][last+i], kind)
				}
			}
			got["entries"] = got["entries"][:last]
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}

			if err := ledger.Copy(ctx, from, open(t), m); !errors.Is(err, ledger.ErrLedgerClosed) || !strings.Contains(err.Error(), "sqlite:new.db") {
				t.Errorf("a second target: Copy() = %v, want ErrLedgerClosed", err)
			}
			if err := ledger.Copy(ctx, target, from, m); !errors.Is(err, ledger.ErrNotEmpty) {
				t.Errorf("to the source: Copy() = %v, want ErrNotEmpty", err)
			}
			back := inFile(t, filepath.Join(t.TempDir(), "back.db"))
			if err := ledger.Copy(ctx, target, back, m); err != nil {
				t.Fatalf("Copy() back = %v", err)
			}
			checkStore(t, back, &closed)

			clock := ledgertest.NewClock(t)
			clock.Set(t, afterwards)
			d := &desk{ledgertest.Open(t, back, clock), nil}
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
		})
	}
}
