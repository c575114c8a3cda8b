package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/ledgertest"
)

// inMemory is a store with held, approved, pruned and ended runs, and its state.
func inMemory(t *testing.T) (*ledgertest.Store, checkpoint.Checkpoint) {
	t.Helper()
	path, _, _ := prunedArchive(t)
	m, mv := ledgertest.NewStore(t), moving(t)
	check.NoError(t, ledger.Copy(t.Context(), inFile(t, path), m, mv))
	return m, ledgertest.State(t, m)
}

// TestCopyFails makes each operation of both stores fail once. The source is closed only if the target has everything. Copying again succeeds.
func TestCopyFails(t *testing.T) {
	source, before := inMemory(t)
	copied := func(t *testing.T, broken string, at ledgertest.Op) (failed bool) {
		from, to, m := source.Copy(t), ledgertest.NewStore(t), moving(t)
		fails := func(op ledgertest.Op, _ int) error {
			if op != at || failed {
				return nil
			}
			failed = true
			return errors.New("broken")
		}
		if broken == "source" {
			from.Fail = fails
		} else {
			to.Fail = fails
		}
		err := ledger.Copy(t.Context(), from, to, m)
		if (err != nil) != failed {
			t.Fatalf("Copy() = %v", err)
		}
		closed := ledgertest.State(t, from)
		err = to.View(t.Context(), func(r ledger.Reader) error {
			end, err := r.End()
			if whole := end.Type == ledger.LedgerClosed || end.Type == ledger.LedgerContinued; end.Size > 0 && !whole {
				t.Errorf("half of the copy can be used: %+v", end)
			} else if closed.Size > before.Size && !whole {
				t.Errorf("the source is closed and the target has %+v", end)
			}
			return err
		})
		check.NoError(t, err)
		if err := ledger.Copy(t.Context(), from, to, m); err != nil {
			t.Errorf("again: Copy() = %v", err)
		}
		closed = ledgertest.State(t, from)
		if r := ledgertest.Verify(t, to, &closed); r.Size != before.Size+2 {
			t.Errorf("the copy has %d entries, want %d", r.Size, before.Size+2)
		}
		return failed
	}
	for _, c := range []struct {
		store string
		at    []ledgertest.Op
	}{
		{"source", []ledgertest.Op{ledgertest.Begin, ledgertest.AddEntry, ledgertest.Commit, ledgertest.Committed}},
		{"target", []ledgertest.Op{
			ledgertest.Begin, ledgertest.AddEntry, ledgertest.AddRequest, ledgertest.PutBlob, ledgertest.PutToken, ledgertest.PutDelivery,
			ledgertest.Delivered, ledgertest.Commit, ledgertest.Committed,
		}},
	} {
		for _, at := range c.at {
			t.Run(c.store+"-"+string(at), func(t *testing.T) {
				if !copied(t, c.store, at) {
					t.Error("nothing failed")
				}
			})
		}
	}
}

// TestCopyRefuses shows what no ledger is copied to, and when.
func TestCopyRefuses(t *testing.T) {
	source, before := inMemory(t)
	running := func(t *testing.T, from ledger.Store) string {
		d := openAfterwards(t, from)
		id := ledgertest.NewID(t)
		s := statestest.Find(t, "policy-allows")
		run, rec := d.begin(id, &s)
		_, err := d.Machine.Advance(t.Context(), run, crashing{s.Entry(), func() error { return errors.New("in flight") }}, rec)
		if err == nil {
			t.Fatal("the call is not in flight")
		}
		return id
	}
	t.Run("live-run", func(t *testing.T) {
		from, to := source.Copy(t), ledgertest.NewStore(t)
		id := running(t, from.Open())
		err := ledger.Copy(t.Context(), from, to, moving(t))
		if !errors.Is(err, ledger.ErrInUse) || !strings.Contains(err.Error(), id) {
			t.Errorf("Copy() = %v, want ErrInUse of %s", err, id)
		}
	})
	t.Run("run-of-a-process-that-is-gone", func(t *testing.T) {
		from, to := source.Copy(t), ledgertest.NewStore(t)
		process := from.Open()
		running(t, process)
		process.Crash()
		check.NoError(t, ledger.Copy(t.Context(), from, to, moving(t)))
		d := openAfterwards(t, to)
		if all, err := d.Recover(t.Context(), d.replayer(nil)); err != nil || len(all) != 2 || all[0].Outcome.Code != "indeterminate" {
			t.Errorf("Recover() = %+v, %v, want two runs whose calls were in flight", all, err)
		}
	})
	t.Run("target-with-a-log-of-its-own", func(t *testing.T) {
		from, other := source.Copy(t), newFixture(t)
		other.passes(1)
		if err := ledger.Copy(t.Context(), from, other.Store, moving(t)); !errors.Is(err, ledger.ErrNotEmpty) {
			t.Errorf("Copy() = %v, want ErrNotEmpty", err)
		}
		if now := ledgertest.State(t, from); now != before {
			t.Errorf("the source is at %+v, want %+v", now, before)
		}
	})
	t.Run("unfinished-copy-that-the-source-outgrew", func(t *testing.T) {
		from, to := source.Copy(t), ledgertest.NewStore(t)
		from.Fail = ledgertest.FailAt(ledgertest.Commit, 0, errors.New("broken"))
		if err := ledger.Copy(t.Context(), from, to, moving(t)); err == nil {
			t.Fatal("Copy() = nil")
		}
		from.Fail = nil
		d := openAfterwards(t, from.Open())
		d.passes(1)
		if err := ledger.Copy(t.Context(), from, to, moving(t)); !errors.Is(err, ledger.ErrNotEmpty) {
			t.Errorf("Copy() = %v, want ErrNotEmpty", err)
		}
		if _, err := ledger.Open(t.Context(), to, ledger.Options{}); !errors.Is(err, ledger.ErrLedgerClosed) {
			t.Errorf("Open() = %v, want ErrLedgerClosed", err)
		}
	})
	t.Run("empty-source", func(t *testing.T) {
		if err := ledger.Copy(t.Context(), ledgertest.NewStore(t), ledgertest.NewStore(t), moving(t)); err == nil {
			t.Error("Copy() = nil")
		}
	})
	t.Run("admin", func(t *testing.T) {
		from, to := source.Copy(t), ledgertest.NewStore(t)
		d := openAfterwards(t, from.Open())
		admin := d.Caller(d.Token("ada", ledger.RoleAdmin))
		m := moving(t)
		if err := ledger.Copy(t.Context(), from, to, m); !errors.Is(err, ledger.ErrRole) {
			t.Errorf("Copy() = %v, want ErrRole", err)
		}
		m.By = admin
		if err := ledger.Copy(t.Context(), from, to, m); err != nil {
			t.Errorf("Copy() by an admin = %v", err)
		}
	})
}

// TestClosedLedger shows that a process that has a ledger open writes nothing after a copy closed it.
func TestClosedLedger(t *testing.T) {
	source, _ := inMemory(t)
	d := openAfterwards(t, source.Open())
	check.NoError(t, ledger.Copy(t.Context(), source, ledgertest.NewStore(t), moving(t)))
	closed := ledgertest.State(t, source)
	writes := map[string]func(ctx context.Context) error{
		"pass": func(ctx context.Context) error {
			return d.RecordPassage(ctx, ledger.Passage{By: ledger.LocalUser(ledger.Anonymous), Server: "files", Direction: ledger.ToServer, Method: "ping"})
		},
		"update": func(ctx context.Context) error {
			return d.Update(ctx, func(tx ledger.Tx) error { return tx.SetNextDelivery("hook", 1) })
		},
		"prune": func(ctx context.Context) error { _, err := d.Prune(ctx, "2026-11-21T09:44:00.000Z", root); return err },
		"token": func(ctx context.Context) error {
			_, _, err := d.CreateToken(ctx, root, "eve", ledger.RoleAgent, "")
			return err
		},
		"open": func(ctx context.Context) error { _, err := ledger.Open(ctx, source, ledger.Options{}); return err },
	}
	for what, write := range writes { // in any order
		if err := write(t.Context()); !errors.Is(err, ledger.ErrLedgerClosed) || !strings.Contains(err.Error(), "it goes on in sqlite:new.db") {
			t.Errorf("%s: %v, want ErrLedgerClosed that names the target", what, err)
		}
	}
	if now := ledgertest.State(t, source); now != closed {
		t.Errorf("the closed ledger is at %+v, want %+v", now, closed)
	}
}

// TestVerifyNamesAForgedEnd forges what follows the end of a log.
func TestVerifyNamesAForgedEnd(t *testing.T) {
	source, _ := inMemory(t)
	d := &fixture{ledgertest.Open(t, source, ledgertest.NewClock(t))}
	insert := func(kind ledger.Type, behind int) edit {
		return func(t *testing.T, all []ledger.Event) []ledger.Event {
			i := lastOf(t, all, ledger.LedgerClosed) + behind
			e := ledger.Event{Type: kind, At: all[i-1].At, By: "local:mallory", Payload: fmt.Appendf(nil, `{"type":%q}`, kind)}
			if kind == ledger.LedgerClosed {
				e.Payload = []byte(`{"target":"sqlite:other.db","type":"ledger.closed"}`)
			}
			return slices.Insert(all, i, e)
		}
	}
	d.forge(t,
		forgery{"nothing-changed", unedited, ""},
		forgery{"another-entry-follows-the-end", without(ledger.LedgerContinued), ""},
		forgery{"goes-on-twice", insert(ledger.LedgerContinued, 2), "the only entry that may follow"},
		forgery{"goes-on-before-the-end", insert(ledger.LedgerContinued, 0), "the only entry that may follow"},
		forgery{"ends-twice", insert(ledger.LedgerClosed, 1), "the only entry that may follow"},
		forgery{"end-of-a-run", func(t *testing.T, all []ledger.Event) []ledger.Event {
			i := lastOf(t, all, ledger.ApprovalRequested)
			e := all[i]
			e.Type, e.Payload = ledger.LedgerClosed, []byte(`{"target":"sqlite:other.db","type":"ledger.closed"}`)
			e.At = all[len(all)-1].At
			return append(all, e)
		}, "ledger.closed is about no run"},
	)
}
