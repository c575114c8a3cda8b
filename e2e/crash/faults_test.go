//go:build unix

package crash_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// A fixture is a ledger whose commits break, and the count of the calls that were made.
type fixture struct {
	*worker
	*testing.T
	store *ledgertest.Store
	calls map[string]int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	b := &fixture{T: t, store: ledgertest.NewStore(t), calls: make(map[string]int)}
	b.open(nil)
	text, _, err := b.CreateToken(t.Context(), ledger.Local("local:root"), people[0], ledger.RoleApprover, "")
	check.NoError(t, err)
	c, err := b.Authenticate(t.Context(), text)
	check.NoError(t, err)
	b.people = []ledger.Caller{c}
	t.Cleanup(func() { b.Close() })
	return b
}

// open is what a process does that starts.
func (b *fixture) open(people []ledger.Caller) {
	b.Helper()
	var err error
	b.worker, err = newWorker(b.store, ledger.Options{})
	check.NoError(b, err)
	b.people, b.tell, b.call = people, func(message) {}, func(run string) { b.calls[run]++ }
	check.NoError(b, b.recovers())
}

// only returns the one run of the ledger, if there is one.
func (b *fixture) only() ledger.Request {
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

func (b *fixture) requests() (all []ledger.Request) {
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
func (b *fixture) approvedRun() string {
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

// Each commit of a run breaks in each of two ways: it is undone, or it is done and nobody receives of it. The call is made only
// behind one that was received of, and once in all; the next process ends or leaves what stands there, as the table says.
func TestEachCommitBreaks(t *testing.T) {
	const undone, unheard = ledgertest.Commit, ledgertest.Committed
	type stands struct {
		status ledger.Status // "": there is no such run
		calls  int
	}
	for _, c := range []struct {
		run    string
		commit int
		how    ledgertest.Op
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
			b, boom := newFixture(t), errors.New("the disk is gone")
			id := ""
			if c.run == "taken" {
				id = b.approvedRun()
			}
			commits := 0
			b.store.Fail = func(at ledgertest.Op, _ int) error {
				if at == c.how {
					commits++
				}
				if at == c.how && commits == c.commit {
					return boom
				}
				return nil
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

			check.NoError(t, b.Close())
			b.store = b.store.Open()
			b.open(b.people) // the next process
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
