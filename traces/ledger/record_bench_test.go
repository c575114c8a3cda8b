package ledger_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

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
			l, err := ledger.Open(store, ledger.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			m, s := statestest.MustMachine(b), find(b, "policy-allows")
			bundle := statestest.MustBundle(s.Content, nil)
			one := func() error {
				w := *s.World // each call has a world of its own
				run := states.NewRun(newID(b), s.Request, bundle)
				rec := l.Begin(traces.NewHeader(m, run), run)
				o, err := m.Advance(context.Background(), run, rec.Door(w.Door()), rec)
				if err == nil {
					_, err = rec.Finish(o)
				}
				return err
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
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
			stats := store.Stats()
			b.ReportMetric(float64(stats.Commits)/float64(b.N), "commits/call")
			b.ReportMetric(float64(stats.Checkpoints)/float64(b.N), "checkpoints/call")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}
