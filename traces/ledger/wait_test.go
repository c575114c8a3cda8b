package ledger_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

func TestWait(t *testing.T) {
	tests := []struct {
		name string
		then func(*fixture, ledger.RunRow) // while it is waited for
		want ledger.Status
		err  error
	}{
		{"approved", func(c *fixture, q ledger.RunRow) { c.Cast(ledgertest.Ballot(q, c.Approver(alice))) }, ledger.Approved, nil},
		{"denied", func(c *fixture, q ledger.RunRow) {
			v := ledgertest.Ballot(q, c.Approver(alice))
			v.Approve = false
			c.Cast(v)
		}, ledger.Denied, nil},
		{"over-and-nobody-said-so", func(c *fixture, _ ledger.RunRow) { c.Clock.Add(time.Hour) }, ledger.Pending, nil},
		{"one-second-left", func(c *fixture, _ ledger.RunRow) { c.Clock.Add(time.Hour - time.Second) }, ledger.Pending, context.DeadlineExceeded},
		{"nothing-happens", func(*fixture, ledger.RunRow) {}, ledger.Pending, context.DeadlineExceeded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newFixture(t)
				q := c.Hold(1)
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				time.AfterFunc(ledger.PollInterval*5/2, func() { tt.then(c, q) })
				begun := time.Now()
				got, err := ledger.Wait(ctx, c, q.RunID, c.Clock.Now)
				if got.Status != tt.want || !errors.Is(err, tt.err) {
					t.Errorf("Wait() = %s, %v; want %s, %v", got.Status, err, tt.want, tt.err)
				}
				if took := time.Since(begun); err == nil && took != 3*ledger.PollInterval {
					t.Errorf("Wait() took %s", took)
				}
			})
		})
	}
}

// TestPauses: while nothing changes the ledger is read less and less often, and as often as before after a change.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pauses []time.Duration
		last := time.Now()
		const looks = 40
		err := ledger.PollChanges(t.Context(), func() (changed, done bool, err error) {
			pauses, last = append(pauses, time.Since(last)), time.Now()
			return len(pauses) == looks-5, len(pauses) == looks, nil
		})
		check.NoError(t, err)
		before, after := pauses[1:looks-5], pauses[looks-5:]
		if !slices.IsSorted(before) || before[0] != ledger.PollInterval || before[len(before)-1] != ledger.MaxPollInterval {
			t.Errorf("the pauses before the change are %v", before)
		}
		if after[0] != ledger.PollInterval {
			t.Errorf("the pauses after the change are %v", after)
		}
	})
}

// A watcher sees each existing and each new event once, in order.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFixture(t)
		first := c.Hold(1)
		enough := errors.New("enough")
		watch := func(after int64, until ledger.Type) (seen []ledger.Type) {
			last := after
			err := ledger.Watch(context.Background(), c, after, func(e ledger.Event, q ledger.RunRow) error {
				if after >= 0 && e.Index != last && e.Index != last+1 {
					t.Errorf("an event of entry %d comes behind one of %d", e.Index, last)
				}
				last = e.Index
				if q.RunID != e.RunID {
					t.Errorf("%s of %q comes with the request of %q", e.Type, e.RunID, q.RunID)
				}
				if seen = append(seen, e.Type); e.Type == until {
					return enough
				}
				return nil
			})
			if !errors.Is(err, enough) {
				t.Errorf("Watch() = %v", err)
			}
			return seen
		}
		if got, want := watch(0, ledger.ApprovalRequested), []ledger.Type{
			ledger.LogCreated, ledger.CommandStarted, ledger.RequestCreated, ledger.RiskScored, ledger.DecisionMade, ledger.ApprovalRequested,
		}; !slices.Equal(got, want) {
			t.Errorf("from the beginning: %v, want %v", got, want)
		}
		time.AfterFunc(time.Second, func() { c.Cast(ledgertest.Ballot(first, c.Approver(alice))) })
		if got, want := watch(-1, ledger.ApprovalApproved), []ledger.Type{ledger.TokenCreated, ledger.ApprovalApproved}; !slices.Equal(got, want) {
			t.Errorf("from now on: %v, want %v", got, want)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := ledger.Watch(ctx, c, -1, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Watch() = %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

// Many events are seen in order too, although they are not held at once.
func TestWatchMany(t *testing.T) {
	c := newFixture(t)
	const messages = 1005 // a few more than are read at once
	c.PassMessages(messages)
	enough := errors.New("enough")
	last := int64(-1)
	err := ledger.Watch(context.Background(), c, 0, func(e ledger.Event, _ ledger.RunRow) error {
		if e.Index != last+1 {
			t.Errorf("an event of entry %d comes behind one of %d", e.Index, last)
		}
		if last = e.Index; last == messages {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("Watch() = %v", err)
	}
}
