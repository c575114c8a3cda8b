package ledger_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"pgfsm/cputime"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlite"
)

// BenchmarkRecordedCalls takes allowed calls through the machine and a ledger in a file, so many at a time, in a world that
// answers at once. It reports commits and checkpoints a call.
func BenchmarkRecordedCalls(b *testing.B) {
	for _, at := range []int{1, 32, 64} {
		b.Run(fmt.Sprintf("at-a-time-%d", at), func(b *testing.B) {
			store, err := sqlite.Open(filepath.Join(b.TempDir(), "bench.db"), sqlite.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			benchCalls(b, store, at)
			stats := store.Stats()
			b.ReportMetric(float64(stats.Commits)/float64(b.N), "commits/call")
			b.ReportMetric(float64(stats.Checkpoints)/float64(b.N), "checkpoints/call")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}

// BenchmarkCallsForNothing is what is left of [BenchmarkRecordedCalls] beside the file: the calls with a ledger whose store
// keeps nothing, and with a recorder that does.
func BenchmarkCallsForNothing(b *testing.B) {
	for _, at := range []int{1, 32} {
		b.Run(fmt.Sprintf("ledger/at-a-time-%d", at), func(b *testing.B) { benchCalls(b, &nowhere{rows: make(map[string]ledger.Request)}, at) })
		b.Run(fmt.Sprintf("no-ledger/at-a-time-%d", at), func(b *testing.B) { benchCalls(b, nil, at) })
	}
}

// benchCalls takes calls through the machine, so many at a time, with a ledger in the store if there is one.
func benchCalls(b *testing.B, store ledger.Store, at int) {
	m, s := statestest.MustMachine(b), find(b, "policy-allows")
	bundle := statestest.MustBundle(s.Content, nil)
	one := func() error {
		w := *s.World // each call has a world of its own
		_, err := m.Advance(context.Background(), states.NewRun(newID(b), s.Request, bundle), w.Door(), forgetful{})
		return err
	}
	if store != nil {
		l, err := ledger.Open(context.Background(), store, ledger.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		one = func() error { return recorded(l, m, newID(b), &s, bundle) }
	}
	b.ReportAllocs()
	b.ResetTimer()
	measured := cputime.Measure(b)
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range at {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := one(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	measured()
}

// recorded is one call with its record.
func recorded(l *ledger.Ledger, m *states.Machine, id string, s *statestest.Scenario, bundle *policy.Bundle) error {
	w := *s.World
	run := states.NewRun(id, s.Request, bundle)
	rec := l.Begin(traces.NewHeader(m, run), run)
	o, err := m.Advance(context.Background(), run, rec.Door(w.Door()), rec)
	if err == nil {
		_, err = rec.Finish(context.Background(), o)
	}
	return err
}

type forgetful struct{}

func (forgetful) Append(context.Context, states.Step) error { return nil }

// Nowhere is a store that takes everything and keeps only what its writers ask for again. One ledger writes to it.
type nowhere struct {
	ledger.Store
	rows map[string]ledger.Request
	end  ledger.End
}

func (n *nowhere) Own(context.Context, string) (func() error, error) {
	return func() error { return nil }, nil
}

func (n *nowhere) Update(_ context.Context, do func(ledger.Tx) error) error {
	return do(nowhereTx{n, nil})
}

type nowhereTx struct {
	*nowhere
	ledger.Tx
}

func (t nowhereTx) End() (ledger.End, error) {
	if t.end.Seq == 0 {
		return t.end, ledger.ErrNotFound
	}
	return t.end, nil
}

func (t nowhereTx) Reached(run string) (int64, error) {
	q, there := t.rows[run]
	if !there {
		return 0, ledger.ErrNotFound
	}
	return q.Seq, nil
}

func (t nowhereTx) AddEvents(all []ledger.Event) error {
	last := &all[len(all)-1]
	t.end = ledger.End{Seq: last.Seq, At: last.At, Hash: last.Hash}
	return nil
}

func (t nowhereTx) AddDecision(ledger.Decision) error { return nil }

func (t nowhereTx) AddSteps([]ledger.Step) error { return nil }

func (t nowhereTx) AddRequest(q ledger.Request) error { return t.PutRequest(q) }

func (t nowhereTx) PutRequest(q ledger.Request) error {
	t.rows[q.RunID] = q
	if q.Ended != "" {
		delete(t.rows, q.RunID)
	}
	return nil
}

func (t nowhereTx) PutBlob(ledger.Blob) error { return nil }
