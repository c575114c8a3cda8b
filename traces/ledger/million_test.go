package ledger_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
	"pgfsm/traces/ledger/sqlite"
)

const (
	// manyRuns is how many runs the test makes unless PGFSM_LEDGER_RUNS says otherwise: make million asks for a million.
	manyRuns = 1000
	// atOnce is how many runs share commits.
	atOnce = 64
	// heldIn: of so many runs one is held; a fifth of the others is called, and the rest is denied.
	heldIn = 100
	// verifyHeap and openHeap are how much memory a verification may need in bytes, however many runs have ended, and for each that has not.
	verifyHeap = 64 << 20
	openHeap   = 32 << 10
)

// TestManyRuns makes a ledger, and does with it what people and calls do every day. What it says about time is for docs/internals/benchmarks.md.
func TestManyRuns(t *testing.T) {
	n := manyRuns
	if text := os.Getenv("PGFSM_LEDGER_RUNS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < manyRuns {
			t.Fatalf("PGFSM_LEDGER_RUNS is %q: want a number from %d", text, manyRuns)
		}
	}
	path := filepath.Join(t.TempDir(), "ledger.db")
	d, writer := fixtureInFile(t, path, ledgertest.NewClock(t))
	begun := time.Now()
	d.makeRuns(n)
	t.Logf("%d runs in %v", n, time.Since(begun))
	check.NoError(t, d.Close())
	_ = writer
	info, err := os.Stat(path)
	check.NoError(t, err)
	t.Logf("%d bytes a run", info.Size()/int64(n))

	store, err := sqlite.OpenReadOnly(path)
	check.NoError(t, err)
	defer store.Close()
	const page = 50
	actor := statestest.Actor
	for _, c := range []struct {
		name   string
		filter ledger.Filter
		want   int // -1: some
	}{
		{"the newest 50", ledger.Filter{Newest: true, Limit: page}, page},
		{"the newest 50 pending", ledger.Filter{Statuses: []ledger.Status{ledger.Pending}, Newest: true, Limit: page}, min(page, n/heldIn)},
		{"the newest 50 denied or executed", ledger.Filter{Statuses: []ledger.Status{ledger.Denied, ledger.Executed}, Newest: true, Limit: page}, page},
		{"the newest 50 of an actor", ledger.Filter{Actor: actor, Newest: true, Limit: page}, page},
		{"the newest 50 of an actor who never asked", ledger.Filter{Actor: dave, Newest: true, Limit: page}, 0},
		{"all that have not ended", ledger.Filter{Open: true}, n / heldIn},
		{"a history count of a minute, of an actor", ledger.Filter{Actor: actor, Counted: true, Since: "2026-11-21T09:59:00.000Z"}, -1},
		{"a history count of a task that made none", ledger.Filter{Task: "none", Counted: true}, 0},
	} {
		got := 0
		timed(t, store, c.name, func(r ledger.Reader) error {
			got = 0
			for _, err := range r.Runs(c.filter) {
				if err != nil {
					return err
				}
				got++
			}
			return nil
		})
		if c.want >= 0 && got != c.want {
			t.Errorf("%s: %d runs, want %d", c.name, got, c.want)
		}
	}
	timed(t, store, "a checkpoint", func(r ledger.Reader) error {
		_, err := ledger.TakeCheckpoint(r)
		return err
	})
	verifyMany(t, store, n)
}

// makeRuns records runs as a busy gateway does. The clock moves on, an hour in all.
func (d *fixture) makeRuns(n int) {
	d.TB.Helper()
	var next atomic.Int64
	var wait sync.WaitGroup
	step := time.Hour / time.Duration(n)
	for range atOnce {
		kinds := []statestest.Scenario{ // of this worker alone
			statestest.Find(d.TB, "policy-holds"), statestest.Find(d.TB, "policy-allows"), statestest.Find(d.TB, "policy-denies-by-effect"),
		}
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				s := kinds[2]
				switch {
				case i%heldIn == 0:
					s = kinds[0]
				case i%5 == 0:
					s = kinds[1]
				}
				s.World = new(*s.World)
				if _, _, err := d.play(ledgertest.NewID(d.TB), &s); err != nil {
					d.TB.Errorf("play() = %v", err)
					return
				}
				if i%100 == 0 {
					d.Clock.Add(100 * step)
				}
			}
		})
	}
	wait.Wait()
}

// timed looks at a ledger several times, and says how long the quickest look took: the others may have waited for the machine.
func timed(t *testing.T, s ledger.Store, name string, look func(ledger.Reader) error) {
	t.Helper()
	best := time.Duration(0)
	for range 3 {
		begun := time.Now()
		if err := s.View(context.Background(), look); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if took := time.Since(begun); best == 0 || took < best {
			best = took
		}
	}
	t.Logf("%-45s %v", name, best)
}

// verifyMany verifies all, and looks at how much memory that takes meanwhile.
func verifyMany(t *testing.T, s ledger.Store, n int) {
	t.Helper()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, most := m.HeapAlloc, uint64(0)
	seen := 0
	look := func(int64, int64) {
		if seen++; seen%8 == 0 {
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
	}
	begun := time.Now()
	var report ledger.Report
	err := s.View(context.Background(), func(r ledger.Reader) (err error) {
		report, err = ledger.Verify(context.Background(), r, ledger.VerifyOptions{Progress: look})
		return err
	})
	check.NoError(t, err)
	took := time.Since(begun)
	if report.Requests != int64(n) {
		t.Errorf("%d runs were verified, want %d", report.Requests, n)
	}
	if bound := uint64(verifyHeap + n/heldIn*openHeap); most > before+bound {
		t.Errorf("the verification took %d MB of memory, want at most %d", (most-before)>>20, bound>>20)
	}
	t.Logf("%d entries verified in %v: %.0f a second, %d MB of memory", report.Entries, took, float64(report.Entries)/took.Seconds(),
		(max(most, before)-before)>>20)
}
