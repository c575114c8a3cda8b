package runner_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgfsm/internal/runner"
	"pgfsm/internal/secret"
	"pgfsm/internal/test/check"
	"pgfsm/mcp/upstream"
	"pgfsm/policy"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// runs starts a worker, which is stopped when the test ends.
func runs(t *testing.T, o runner.Options) *runner.Worker {
	t.Helper()
	w := runner.NewWorker(newRunner(t, o))
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		w.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-stopped
	})
	return w
}

// noServers are upstreams with which approved runs are resumed.
func noServers(t *testing.T) *upstream.Upstreams {
	t.Helper()
	u := upstream.New(nil, upstream.Limits{}, upstream.Info{}, secret.New(nil))
	t.Cleanup(func() { _ = u.Close() })
	return u
}

// TestWorkerEndsWhatIsDecided: many more runs than are resumed at once, beside runs that cannot be resumed.
func TestWorkerEndsWhatIsDecided(t *testing.T) {
	for _, tt := range []struct {
		name           string
		taken, decided int // runs of another process, which cannot be resumed, and runs that can
	}{
		{"more-than-are-resumed-at-once", 0, 40},
		{"behind-more-of-another-process-than-are-resumed-at-once", 40, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			memory := ledgertest.NewStore(t)
			l, other := open(t, memory), open(t, memory)
			alice := token(t, l, "alice@example.com", ledger.RoleApprover)
			for _, id := range held(t, other, tt.taken, alice, true) {
				check.NoError(t, other.Claim(t.Context(), id))
			}
			// The worker's first sweep ends what was denied before it.
			first := held(t, l, 1, alice, false)[0]
			content := statestest.Content()
			w := runs(t, runner.Options{Ledger: open(t, memory), Config: runner.Config{
				Upstreams: noServers(t), Bundle: statestest.MustBundle(content, nil), Secrets: secret.New(nil),
			}})
			ends(t, l, first)

			ids := held(t, l, tt.decided, alice, false)
			w.Wake()
			for _, id := range ids {
				if q := ends(t, l, id); q.Status != ledger.Denied {
					t.Errorf("a denied run is %s", q.Status)
				}
			}
		})
	}
}

// TestWorkerWithoutServers leaves approved runs to other processes.
func TestWorkerWithoutServers(t *testing.T) {
	t.Parallel()
	memory := ledgertest.NewStore(t)
	l := open(t, memory)
	alice := token(t, l, "alice@example.com", ledger.RoleApprover)
	approved, denied := held(t, l, 1, alice, true)[0], held(t, l, 1, alice, false)[0]
	w := runs(t, runner.Options{Ledger: open(t, memory)})
	ends(t, l, denied)
	later := held(t, l, 1, alice, false)[0]
	w.Wake()
	ends(t, l, later)
	if q := request(t, l, approved); q.Ended != "" || q.Status != ledger.Approved {
		t.Errorf("the approved run is %s, ended %q", q.Status, q.Ended)
	}
	if err := w.Ready(); err != nil {
		t.Error(err)
	}
}

// TestWorkerMakesApprovedCalls: once, also with two workers.
func TestWorkerMakesApprovedCalls(t *testing.T) {
	t.Parallel()
	s := newStage(t, hold)
	r := s.runner()
	got := ask(t, r)
	l := s.open()
	alice := token(t, l, "alice@example.com", ledger.RoleApprover)
	vote(t, l, got.Run.ID(), got.Run.HeldCall().Binding, alice, true)
	for range 2 {
		o := s.options
		o.Ledger = s.open()
		runs(t, o)
	}
	q := ends(t, l, got.Run.ID())
	if q.Status != ledger.Executed || s.calls() != 1 {
		t.Errorf("the run is %s (%s), %d calls", q.Status, q.Reason, s.calls())
	}
	if q.Ended < q.At || time.Now().UTC().Format(policy.TimeForm) < q.At {
		t.Errorf("at %s, ended %s", q.At, q.Ended)
	}
}

// TestWorkerWaitsAfterAnOutage: while the ledger is away no process can renew its lease. When it is back, no runs are taken over until each has
// had time to do so.
func TestWorkerWaitsAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := ledgertest.NewStore(t)
		l, store := open(t, memory), memory.Open()
		alice := token(t, l, "alice@example.com", ledger.RoleApprover)
		var away atomic.Bool
		o := runner.Options{Ledger: openIn(t, sometimes{store, &away})}
		ctx, stop := context.WithCancel(t.Context())
		w := runner.NewWorker(newRunner(t, o))
		var all sync.WaitGroup
		all.Go(func() { w.Run(ctx) })
		defer all.Wait()
		defer stop()
		synctest.Wait()

		dies := memory.Open()
		other := openIn(t, dies)
		id := held(t, other, 1, alice, false)[0]
		check.NoError(t, other.Claim(t.Context(), id))
		away.Store(true)
		time.Sleep(time.Minute)
		dies.Crash()
		away.Store(false)
		time.Sleep(10 * time.Second)
		if q := request(t, l, id); q.Ended != "" {
			t.Errorf("the run ended at %s, before others had time to renew their leases", q.Ended)
		}
		time.Sleep(10 * time.Second)
		if q := request(t, l, id); q.Ended == "" {
			t.Error("the run of a process that is gone was not ended")
		}
	})
}

// A store that is sometimes away.
type sometimes struct {
	*ledgertest.Store
	away *atomic.Bool
}

func (s sometimes) View(ctx context.Context, do func(ledger.Reader) error) error {
	if s.away.Load() {
		return ledger.ErrUnavailable
	}
	return s.Store.View(ctx, do)
}
