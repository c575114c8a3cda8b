package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgfsm/internal/runner"
	"pgfsm/internal/test/check"
	"pgfsm/internal/web/loopback"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// A faraway store is as a database on another machine: it has a clock of its own, and may fail for good.
type faraway struct {
	*ledgertest.Store
	ahead time.Duration
	fails error
}

func (f *faraway) Now() time.Time { return time.Now().Add(f.ahead) }

func (f *faraway) View(ctx context.Context, do func(ledger.Reader) error) error {
	if f.fails != nil {
		return f.fails
	}
	return f.Store.View(ctx, do)
}

func openIn(t *testing.T, store ledger.Store) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), store, ledger.Options{})
	check.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestTimesAreTheStores: requests and expiries have the time of the clock that all replicas share, not the time of the replica's machine.
func TestTimesAreTheStores(t *testing.T) {
	t.Parallel()
	s := newStage(t, hold)
	l := openIn(t, &faraway{Store: s.memory.Open(), ahead: 5 * time.Hour})
	s.options.Ledger = l
	got := ask(t, newRunner(t, s.options))
	q := request(t, l, got.Run.ID())
	early, late := time.Now().Add(4*time.Hour).UTC().Format(policy.TimeForm), time.Now().Add(6*time.Hour).UTC().Format(policy.TimeForm)
	for what, at := range map[string]string{"request": q.At, "last event": q.Updated} { // in any order: each is independent
		if at < early || at > late {
			t.Errorf("the time of the %s is %s, want that of the store", what, at)
		}
	}
	if want := time.Now().Add(5*time.Hour + 59*time.Minute).UTC().Format(policy.TimeForm); q.Expires < want {
		t.Errorf("the call expires at %s, want an hour after its request", q.Expires)
	}
}

// TestServiceEndsWithoutItsLedger: a process whose lease another one has ended, or whose ledger has lost entries, ends and says what to do.
func TestServiceEndsWithoutItsLedger(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cause error
		says  string
	}{
		{"fenced", ledger.ErrFenced, "start it again"},
		{"lost", ledger.ErrLost, "begin a new ledger"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, nil)
			store := &faraway{Store: s.memory.Open()}
			s.options.Ledger = openIn(t, store)
			on, err := loopback.Listen("127.0.0.1:0")
			check.NoError(t, err)
			all, err := runner.NewService(t.Context(), newRunner(t, s.options), runner.ServiceOptions{Admin: on, Store: store})
			check.NoError(t, err)
			store.fails = fmt.Errorf("ledger x: %w", tt.cause)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := all.Run(ctx); !errors.Is(err, tt.cause) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Run() = %v, want %v and what to do", err, tt.cause)
			}
		})
	}
}

// TestUnsettledDelivery: if nobody knows whether the delivery of an outcome was recorded, the agent does not get it, and is told to look
// before it repeats the call: the repetition may be a new call.
func TestUnsettledDelivery(t *testing.T) {
	t.Parallel()
	s := newStage(t, hold)
	var unsettled, wrote atomic.Bool
	store := s.memory.Open()
	store.Fail = func(op ledgertest.Op, _ int) error {
		switch op {
		case ledgertest.Begin:
			wrote.Store(false)
		case ledgertest.PutRequest:
			wrote.Store(true)
		case ledgertest.Committed: // what writes nothing is never unsettled
			if unsettled.Load() && wrote.Load() {
				return ledger.ErrUnsettled
			}
		}
		return nil
	}
	o := s.options
	o.Ledger = openIn(t, store)
	mcp, _ := serve(t, newRunner(t, o), runner.ServiceOptions{Store: s.memory.Open()})
	l := s.open()
	ann := newToken(t, l, "ann@example.com", ledger.RoleAgent)
	only := func() (q ledger.RunRow) {
		t.Helper()
		err := l.View(t.Context(), func(r ledger.Reader) error {
			for found, err := range r.Runs(ledger.Filter{Limit: 1}) {
				q = found
				return err
			}
			return nil
		})
		check.NoError(t, err)
		return q
	}
	if _, got := post(t, mcp, ann, "fetch_policy_entry", call); !strings.Contains(got, `"code":"approval_required"`) {
		t.Fatal(got)
	}
	q := only()
	vote(t, l, q.RunID, q.Binding, token(t, l, "alice@example.com", ledger.RoleApprover), true)
	ends(t, l, q.RunID)
	unsettled.Store(true)
	if _, got := post(t, mcp, ann, "fetch_policy_entry", call); !strings.Contains(got, `"effect":"unknown"`) || !strings.Contains(got, `"retry":"look"`) {
		t.Errorf("the agent is told %s", got)
	}
	unsettled.Store(false)
	if _, got := post(t, mcp, ann, "fetch_policy_entry", call); !strings.Contains(got, `"code":"approval_required"`) || strings.Contains(got, q.RunID) || s.calls() != 1 {
		t.Errorf("the delivery was recorded, and the repetition is answered %s; %d calls", got, s.calls())
	}
}
