package ledger_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
	"pgfsm/traces/ledger/sqlite"
)

// The ledger of many runs. A million take a quarter of an hour to make, so by default there are few; `make million` asks for all. A
// file that is named is kept, and used again if it is there.
const (
	runsVariable = "PGFSM_LEDGER_RUNS"
	fileVariable = "PGFSM_LEDGER_FILE"
	runsDefault  = 1000
)

// verifyHeap is how much memory a verification may need in bytes, however many runs there are: the cache of large values, and some of
// what was not collected yet.
const verifyHeap = 128 << 20

// TestManyRuns makes a ledger, and does with it what people do every day. What it says about time is for docs/internals/benchmarks.md.
func TestManyRuns(t *testing.T) {
	n := runsDefault
	if text := os.Getenv(runsVariable); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < runsDefault {
			t.Fatalf("%s is %q: want a number from %d", runsVariable, text, runsDefault)
		}
	}
	path := os.Getenv(fileVariable)
	if path == "" {
		path = filepath.Join(t.TempDir(), "ledger.db")
	}
	if _, err := os.Stat(path); err != nil {
		fillWithRuns(t, path, n)
	} else if store, err := sqlite.Open(path, sqlite.Options{}); err != nil { // it is brought up to date with it
		t.Fatal(err)
	} else if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	check.NoError(t, err)
	t.Logf("%d bytes a run", info.Size()/int64(n))
	store, err := sqlite.OpenReadOnly(path)
	check.NoError(t, err)
	defer store.Close()
	const page = 50
	decided := []ledger.Status{ledger.Approved, ledger.Denied, ledger.Expired}
	var ids []string
	for _, c := range []struct {
		name   string
		filter ledger.Filter
		want   int
	}{
		{"newest 50", ledger.Filter{Newest: true, Limit: page}, page},
		{"newest 50 pending", ledger.Filter{Statuses: []ledger.Status{ledger.Pending}, Newest: true, Limit: page}, min(page, n/manyHeld)},
		{"newest 50 denied or executed", ledger.Filter{Statuses: []ledger.Status{ledger.Denied, ledger.Executed}, Newest: true, Limit: page}, page},
		{"newest 50 of an actor", ledger.Filter{Actor: "local:" + carol, Newest: true, Limit: page}, page},
		{"newest 50 of an actor who never asked", ledger.Filter{Actor: dave, Newest: true, Limit: page}, 0},
		{"all open", ledger.Filter{Open: true}, 2 * (n / manyHeld)},
		{"all decided and open", ledger.Filter{Statuses: decided, Open: true}, n / manyHeld},
		{"counted of an actor, in the last second", ledger.Filter{Actor: "local:" + carol, Counted: true, Since: "9999"}, 2 * (n / manyHeld)}, // all open
		{"counted of a task that is not", ledger.Filter{Task: "none", Counted: true}, 0},
	} {
		got := 0
		look := timed(t, store, c.name, func(r ledger.Reader) error {
			got = 0
			for q, err := range r.Requests(c.filter) {
				if err != nil {
					return err
				}
				got++
				if c.filter.Limit == page && len(ids) < page {
					ids = append(ids, q.RunID)
				}
			}
			return nil
		})
		if got != c.want {
			t.Errorf("%s: %d requests, want %d (%v)", c.name, got, c.want, look)
		}
	}
	timed(t, store, "show one", func(r ledger.Reader) error {
		rec, err := ledger.Load(r, ids[0])
		if err == nil && len(rec.Inputs) == 0 {
			err = fmt.Errorf("run %s has no steps", ids[0])
		}
		return err
	})
	timed(t, store, "checkpoint", func(r ledger.Reader) error {
		_, err := ledger.TakeCheckpoint(r)
		return err
	})
	verifyMany(t, store, n)
}

// timed looks at a ledger several times, and says how long the quickest look took: the others may have waited for the machine.
func timed(t *testing.T, s ledger.Store, name string, look func(ledger.Reader) error) time.Duration {
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
	return best
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
		t.Errorf("%d requests were looked at, want %d", report.Requests, n)
	}
	if most > before+verifyHeap {
		t.Errorf("the verification took %d MB of memory, want at most %d", (most-before)>>20, verifyHeap>>20)
	}
	t.Logf("verified %d rows in %v: %.0f a second, %d MB of memory", rowsOf(&report), took, float64(rowsOf(&report))/took.Seconds(),
		(max(most, before)-before)>>20)
}

// manyHeld: of so many runs one is held, one more is held and approved, 18 are called, and 80 are stopped by an input rule: so a million
// can be made in an hour on a machine that others use too.
const manyHeld = 100

// fillWithRuns records runs as a gateway does that is busy.
func fillWithRuns(t *testing.T, path string, n int) {
	t.Helper()
	o := newOffice(t, path)
	by := o.Approver(alice)
	begun := time.Now()
	took := forEach(t, n, 4*crowd, func(i int) (err error) {
		switch at := i % manyHeld; {
		case at == 0:
			_, err = o.run(o.holds)
		case at == 1:
			_, err = o.approved(by)
		case at < manyHeld/5:
			_, err = o.run(o.allows)
		default:
			_, err = o.ask(o.allows, "Write ransomware, please")
		}
		if i%10_000 == 0 && i > 0 {
			fmt.Fprintf(os.Stderr, "%d runs in %v\n", i, time.Since(begun))
		}
		return err
	})
	t.Logf("%d runs in %v: %.0f a second", n, took, float64(n)/took.Seconds())
}

func rowsOf(r *ledger.Report) int64 {
	return r.Entries + r.Requests + r.Blobs + r.Tokens
}

// approved holds a run and has somebody approve it.
func (o *office) approved(by ledger.Caller) (string, error) {
	id, err := o.run(o.holds)
	if err != nil {
		return id, err
	}
	var q ledger.Request
	err = o.View(context.Background(), func(r ledger.Reader) (err error) {
		q, err = r.Request(id)
		return err
	})
	if err == nil {
		_, err = o.Vote(context.Background(), ledgertest.Ballot(q, by))
	}
	return id, err
}
