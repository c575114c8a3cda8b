//go:build unix

package crash_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
	"pgfsm/traces/ledger/sqlite"
)

// A bench is a ledger that tests break, and the count of the calls that were made.
type bench struct {
	*worker
	*testing.T
	url   string
	store ledger.Store
	back  time.Duration // how far the clock was set back
	calls map[string]int
	fail  func(update int, commit func() error) error // nil: nothing fails
	count int                                         // of updates
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, url: ledgertest.NewURL(t), calls: make(map[string]int)}
	texts := tokens(t, b.url, people[:1])
	b.open()
	c, err := b.Authenticate(context.Background(), texts[0])
	check.NoError(t, err)
	b.people = []ledger.Caller{c}
	t.Cleanup(b.close)
	return b
}

// open is what a process does that starts.
func (b *bench) open() {
	b.Helper()
	var err error
	if path, ok := strings.CutPrefix(b.url, "sqlite:"); !ok {
		b.store = ledgertest.OpenURL(b.T, b.url)
	} else if b.store, err = sqlite.Open(path, sqlite.Options{BusyTimeout: time.Millisecond}); err != nil {
		b.Fatal(err)
	}
	people := []ledger.Caller(nil)
	if b.worker != nil {
		people = b.people
	}
	clock := func() time.Time { return time.Now().Add(-b.back) }
	if b.worker, err = newWorker(failing{b.store, b}, ledger.Options{Clock: clock}); err != nil {
		b.Fatal(err)
	}
	b.people, b.tell, b.call = people, func(message) {}, func(run string) { b.calls[run]++ }
	check.NoError(b, b.recovers())
}

func (b *bench) close() {
	b.Helper()
	if err := errors.Join(b.Close(), b.store.Close()); err != nil {
		b.Error(err)
	}
}

// failing is the store of a bench. A ledger has one update under way at a time.
type failing struct {
	ledger.Store
	b *bench
}

func (f failing) Update(ctx context.Context, do func(ledger.Tx) error) error {
	commit := func() error { return f.Store.Update(ctx, do) }
	if f.b.fail == nil {
		return commit()
	}
	f.b.count++
	return f.b.fail(f.b.count, commit)
}

// only returns the one run of the ledger, if there is one.
func (b *bench) only() ledger.Request {
	b.Helper()
	switch all := b.requests(); len(all) {
	case 0:
		return ledger.Request{}
	case 1:
		return all[0]
	default:
		b.Fatalf("there are %d runs", len(all))
		return ledger.Request{}
	}
}

func (b *bench) requests() (all []ledger.Request) {
	b.Helper()
	err := b.store.View(context.Background(), func(r ledger.Reader) error {
		for q, err := range r.Requests(ledger.Filter{}) {
			if err != nil {
				return err
			}
			all = append(all, q)
		}
		_, err := ledger.Verify(context.Background(), r, ledger.VerifyOptions{})
		return err
	})
	check.NoError(b, err)
	return all
}

// approvedRun is a run that was held and approved.
func (b *bench) approvedRun() string {
	b.Helper()
	id, err := b.fresh(1)
	check.NoError(b, err)
	q, err := b.standing(id)
	if err == nil {
		err = b.vote(&q, b.people[0], true)
	}
	check.NoError(b, err)
	return id
}

// While the ledger cannot be written, no call is made, neither of new runs nor of approved ones, and callers get the reason. Afterwards everything continues.
func TestNoLedgerNoCall(t *testing.T) {
	boom := errors.New("the store is broken")
	for _, c := range []struct {
		name   string
		begin  func(*bench) (end func())
		want   error
		remedy string
	}{
		{"locked-by-another-program", func(b *bench) func() {
			path, ok := strings.CutPrefix(b.url, "sqlite:")
			if !ok {
				b.Skip("no program locks PostgreSQL for good")
			}
			db, err := sql.Open("sqlite", path)
			check.NoError(b, err)
			db.SetMaxOpenConns(1)
			if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
				b.Fatal(err)
			}
			return func() {
				if err := db.Close(); err != nil {
					b.Error(err)
				}
			}
		}, sqlite.ErrLocked, "end the program that holds it"},
		{"clock-set-back", func(b *bench) func() {
			b.back = 2 * ledger.ClockSkew
			return func() { b.back = 0 }
		}, ledger.ErrClockBack, "set it right"},
		{"every-update-fails", func(b *bench) func() {
			b.fail = func(int, func() error) error { return boom }
			return func() { b.fail = nil }
		}, boom, "the store is broken"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			id := b.approvedRun()
			end := c.begin(b)
			for what, do := range map[string]func() error{ // in any order
				"fresh": func() error { _, err := b.fresh(0); return err },
				"held":  func() error { _, err := b.fresh(1); return err },
				"taken": func() error { return b.takes(id) },
			} {
				if err := do(); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.remedy) {
					t.Errorf("%s: %v, want %v with %q", what, err, c.want, c.remedy)
				}
			}
			if len(b.calls) > 0 {
				t.Errorf("%d calls", len(b.calls))
			}
			end()
			if n := len(b.requests()); n != 1 {
				t.Errorf("%d runs are recorded, want the approved one", n)
			}
			if _, err := b.fresh(0); err != nil {
				t.Errorf("it is over: %v", err)
			}
			if err := b.takes(id); err != nil || b.calls[id] != 1 || len(b.calls) != 2 {
				t.Errorf("it is over: %v, %v", err, b.calls)
			}
		})
	}
}

// Each commit of a run breaks in each of two ways: it is undone, or it is done and nobody receives of it. The call is made only
// behind one that was received of, and once in all; the next process ends or leaves what stands there, as the table says.
func TestEachCommitBreaks(t *testing.T) {
	const undone, unheard = "undone", "unheard"
	type stands struct {
		status ledger.Status // "": there is no such run
		calls  int
	}
	for _, c := range []struct {
		run    string
		commit int
		how    string
		next   stands // when the next process has begun
		last   stands // when it has taken up what it could
	}{
		{"fresh", 1, undone, stands{"", 0}, stands{"", 0}},
		{"fresh", 1, unheard, stands{ledger.Indeterminate, 0}, stands{ledger.Indeterminate, 0}},
		{"fresh", 2, undone, stands{ledger.Indeterminate, 1}, stands{ledger.Indeterminate, 1}},
		{"fresh", 2, unheard, stands{ledger.Executed, 1}, stands{ledger.Executed, 1}},
		{"held", 1, undone, stands{"", 0}, stands{"", 0}},
		{"held", 1, unheard, stands{ledger.Pending, 0}, stands{ledger.Pending, 0}},
		{"taken", 1, undone, stands{ledger.Approved, 0}, stands{ledger.Executed, 1}},
		{"taken", 1, unheard, stands{ledger.Approved, 0}, stands{ledger.Executed, 1}},
		{"taken", 2, undone, stands{ledger.Approved, 0}, stands{ledger.Executed, 1}},
		{"taken", 2, unheard, stands{ledger.Indeterminate, 0}, stands{ledger.Indeterminate, 0}},
		{"taken", 3, undone, stands{ledger.Indeterminate, 1}, stands{ledger.Indeterminate, 1}},
		{"taken", 3, unheard, stands{ledger.Executed, 1}, stands{ledger.Executed, 1}},
	} {
		t.Run(fmt.Sprintf("%s-commit-%d-%s", c.run, c.commit, c.how), func(t *testing.T) {
			b, boom := newBench(t), errors.New("the disk is gone")
			id := ""
			if c.run == "taken" {
				id = b.approvedRun()
			}
			b.fail = func(n int, commit func() error) error {
				if n != c.commit {
					return commit()
				}
				if c.how == unheard {
					if err := commit(); err != nil {
						return err
					}
				}
				return boom
			}
			var err error
			switch c.run {
			case "fresh":
				_, err = b.fresh(0)
			case "held":
				_, err = b.fresh(1)
			default:
				err = b.takes(id)
			}
			if !errors.Is(err, boom) {
				t.Fatalf("%v, want the fault", err)
			}
			b.fail = nil
			b.close()
			b.open() // the next process
			expect := func(when string, want stands) {
				t.Helper()
				if q := b.only(); q.Status != want.status || len(b.calls) > 1 || b.calls[q.RunID] != want.calls {
					t.Errorf("%s the run is %q with the calls %v; want %q with %d", when, q.Status, b.calls, want.status, want.calls)
				}
			}
			expect("at first", c.next)
			check.NoError(t, b.drains())
			expect("at last", c.last)
		})
	}
}
