package ledger_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// benchRuns is how many runs the measured ledger tells of, unless PGFSM_BENCH_RUNS says.
const benchRuns = 1000

// BenchmarkVerify verifies a ledger of answered calls in a file.
func BenchmarkVerify(b *testing.B) {
	runs := benchRuns
	if n, err := strconv.Atoi(os.Getenv("PGFSM_BENCH_RUNS")); err == nil && n > 0 {
		runs = n
	}
	path := filepath.Join(b.TempDir(), "pgfsm.db")
	many, _ := deskInFile(b, path, ledgertest.NewClock(b))
	var all sync.WaitGroup
	turns := make(chan struct{}, runs)
	for range runs {
		turns <- struct{}{}
	}
	close(turns)
	for range 64 {
		all.Go(func() {
			s := statestest.Find(b, "policy-allows")
			bundle := statestest.MustBundle(s.Content, nil)
			for range turns {
				run := states.NewRun(ledgertest.NewID(b), s.Request, bundle)
				rec := many.Begin(traces.NewHeader(many.Machine, run), run)
				o, err := many.Machine.Advance(context.Background(), run, rec.Door(statestest.NewWorld().Door()), rec)
				if err == nil {
					_, err = rec.Finish(context.Background(), o)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	check.NoError(b, many.Close())
	var rows int64
	var most uint64
	for b.Loop() {
		report, err := verify(b, path, ledger.VerifyOptions{Progress: func(done, _ int64) {
			if done%(64*1024) == 0 {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapInuse)
			}
		}})
		if err != nil || report.Requests != int64(runs) {
			b.Fatalf("Verify() = %+v, %v", report, err)
		}
		rows += report.Entries + report.Requests + report.Blobs
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(runs*b.N)/b.Elapsed().Seconds(), "runs/s")
	b.ReportMetric(float64(most)/(1<<20), "MB-heap")
}
