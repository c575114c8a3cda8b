package ledger_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgfsm/states/statestest"
	"pgfsm/traces/ledger/ledgertest"
)

// BenchmarkCalls plays allowed calls with all gates and both commits, one after the other and 64 at the same time, and counts the commits.
func BenchmarkCalls(b *testing.B) {
	for _, together := range []int{1, 64} {
		b.Run(fmt.Sprintf("together=%d", together), func(b *testing.B) {
			d, _ := fixtureInFile(b, filepath.Join(b.TempDir(), "ledger.db"), ledgertest.NewClock(b))
			var commits atomic.Int64
			d.MeasureCommits(func(time.Duration) { commits.Add(1) })
			var all sync.WaitGroup
			var begun atomic.Int64
			b.ResetTimer()
			for range together {
				all.Go(func() {
					for begun.Add(1) <= int64(b.N) {
						s := statestest.Find(b, "policy-allows")
						if _, _, err := d.play(ledgertest.NewID(b), &s); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(commits.Load())/float64(b.N), "commits/call")
		})
	}
}
