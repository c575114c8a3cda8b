package postgres_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
	"pgfsm/traces/ledger/postgres"
	"pgfsm/traces/ledger/sqlite"
	"pgfsm/traces/tracestest"
)

func inFile(t *testing.T) ledger.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "ledger.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func inDatabase(t *testing.T) ledger.Store {
	t.Helper()
	s, err := postgres.Open(shared.URL(t) + "&lease=" + lease.String())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// closing closes a store at the test's end.
func closing(t *testing.T, s ledger.Store) ledger.Store {
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestCopy copies a ledger from SQLite to PostgreSQL, to another database, and back. All rows and checkpoints stay, and held calls are decided.
func TestCopy(t *testing.T) {
	clock := ledgertest.NewClock(t)
	admin := ledger.Local("local:root")
	source := inFile(t)
	f := ledgertest.Open(t, source, clock)
	for range 200 { // more rows than a batch or a page has
		f.Ask(ledgertest.Carol, statestest.Content())
	}
	clock.Add(time.Minute)
	before := clock.Now().Format(time.RFC3339)
	if done, err := f.Prune(t.Context(), before, admin); err != nil || done.Runs == 0 {
		t.Fatalf("Prune() = %+v, %v", done, err)
	}
	for range 200 {
		f.Ask(ledgertest.Carol, statestest.Content())
	}
	f.Token(ledgertest.Carol, ledger.RoleAgent)
	q := f.Hold(1)
	err := f.Update(t.Context(), func(tx ledger.Tx) error {
		return errors.Join(tx.SetDelivered("hook", 7), tx.PutDelivery(ledger.Delivery{Entry: 6, Hook: "hook", Next: before, State: "waiting", Error: "\x00"}))
	})
	if err != nil {
		t.Fatal(err)
	}
	path := source.(*sqlite.Store).Path()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	from, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	first, want := ledgertest.State(t, from), ledgertest.Rows(t, from)
	at := closing(t, from)
	for i, to := range []ledger.Store{closing(t, inDatabase(t)), closing(t, inDatabase(t)), inFile(t)} {
		m := ledger.Move{Target: "postgres://db/pgfsm", By: admin, Clock: clock.Now}
		for range 2 {
			if err := ledger.Copy(t.Context(), at, to, m); err != nil {
				t.Fatalf("Copy() = %v", err)
			}
		}
		if _, err := ledger.Open(t.Context(), at, ledger.Options{}); !errors.Is(err, ledger.ErrLedgerClosed) {
			t.Errorf("the source: Open() = %v, want ErrLedgerClosed", err)
		}
		if r := ledgertest.Verify(t, to, &first); r.Size != first.Size+2*int64(i+1) || r.Pruned == 0 {
			t.Errorf("the copy is not whole: %+v", r)
		}
		got := ledgertest.Rows(t, to)
		got["entries"] = got["entries"][:len(want["entries"])]
		got["hooks"] = slices.DeleteFunc(got["hooks"], func(h string) bool { return h == "copy" }) // it marks the copy
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
		at = to
	}
	back := ledgertest.Open(t, at, clock)
	back.Cast(ledgertest.Ballot(back.Request(q.RunID), back.Approver(ledgertest.Alice)))
	if err := back.Claim(t.Context(), q.RunID); err != nil {
		t.Fatal(err)
	}
	got, err := back.Resume(t.Context(), tracestest.Replayer(back.Machine, nil), q.RunID, ledger.World{
		Ports: func(*states.Run) *states.Live {
			w := statestest.NewWorld()
			return &states.Live{Tools: w, Completer: w, Caller: w}
		},
		Bundle: statestest.MustBundle(ledgertest.Holding(1), nil),
	})
	if err != nil || got.Outcome.Type != states.TypeSummary {
		t.Errorf("Resume() = %+v, %v", got.Outcome, err)
	}
}

// TestCopyToItself shows that a ledger is no target of itself, under whatever name, neither before nor after it was closed.
func TestCopyToItself(t *testing.T) {
	clock := ledgertest.NewClock(t)
	url := shared.URL(t) + "&lease=1s"
	open := func() ledger.Store {
		s, err := postgres.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	f := ledgertest.Open(t, open(), clock)
	f.Ask(ledgertest.Carol, statestest.Content())
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	one, other := closing(t, open()), closing(t, open())
	m := ledger.Move{Target: "postgres://db/pgfsm", By: ledger.Local("local:root"), Clock: clock.Now}
	for _, want := range []error{ledger.ErrNotEmpty, ledger.ErrLedgerClosed} {
		before := ledgertest.State(t, one)
		if err := ledger.Copy(t.Context(), one, other, m); !errors.Is(err, want) {
			t.Errorf("Copy() to itself = %v, want %v", err, want)
		}
		if now := ledgertest.State(t, one); now != before {
			t.Errorf("the ledger is at %+v, want %+v", now, before)
		}
		if want == ledger.ErrNotEmpty {
			if err := ledger.Copy(t.Context(), one, closing(t, inFile(t)), m); err != nil {
				t.Fatal(err)
			}
		}
	}
}
