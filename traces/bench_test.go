package traces_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
)

// good are the traces of the museum: runs of the demo, as they were recorded.
func good(tb testing.TB) (names []string, docs [][]byte) {
	tb.Helper()
	names, err := filepath.Glob("testdata/good/*.json")
	if err != nil || len(names) == 0 {
		tb.Fatalf("testdata/good holds %d traces, %v", len(names), err)
	}
	for _, name := range names {
		doc, err := os.ReadFile(name)
		check.NoError(tb, err)
		docs = append(docs, doc)
	}
	return names, docs
}

// BenchmarkReplay reads, checks and executes demo traces again, one after the other; traces/s is the figure.
func BenchmarkReplay(b *testing.B) {
	_, docs := good(b)
	p := traces.NewReplayer(statestest.MustMachine(b), nil)
	bytes := 0
	for _, doc := range docs {
		bytes += len(doc)
	}
	b.SetBytes(int64(bytes / len(docs)))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		t, err := traces.Read(docs[i%len(docs)])
		check.NoError(b, err)
		if _, err := p.Replay(t); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "traces/s")
}

// chained links steps as a ledger does, and forgets them.
type chained struct{ *traces.Chain }

func (c chained) Append(_ context.Context, s states.Step) error {
	_ = c.Link(s, statestest.At)
	return nil
}

// inMemory returns a whole run with eight arguments: the machine, all gates, the chain. Its ports answer at once, and
// nothing is written to a file.
func inMemory(b *testing.B, bundle *policy.Bundle) func() {
	m := statestest.MustMachine(b)
	s := statestest.Find(b, "eight-arguments")
	listed, err := states.DecodeShared(canonical.MustSorted(&states.ToolsListed{
		Happened: "tools_listed", Servers: statestest.Listings(statestest.Page),
	}))
	check.NoError(b, err)
	return func() {
		run := states.NewRun(statestest.RunID, s.Request, bundle)
		h := traces.NewHeader(m, run)
		rec := chained{traces.NewChain(&h)}
		w := *s.World
		w.Listed = []states.Event{listed}
		if o, err := m.Advance(context.Background(), run, w.Door(), rec); err != nil || o.State != "answered" {
			b.Fatal(o, err)
		}
	}
}

// BenchmarkRunInMemory is the machine with a recorder in memory and without effects.
func BenchmarkRunInMemory(b *testing.B) {
	run := inMemory(b, statestest.NewGates().Bundle())
	b.ReportAllocs()
	for b.Loop() {
		run()
	}
}

// BenchmarkRatios measures in turns, so that a machine whose speed drifts does not change the ratios: the gates up to the
// permit against the bare validator on the same bytes, and a whole run against all of its gates.
func BenchmarkRatios(b *testing.B) {
	gates, validate := statestest.NewGates(), statestest.BareValidator()
	run := inMemory(b, gates.Bundle())
	const turns = 50
	var bare, permit, all, machine time.Duration
	measure := func(sum *time.Duration, do func()) {
		start := time.Now()
		for range turns {
			do()
		}
		*sum += time.Since(start)
	}
	for b.Loop() {
		measure(&bare, func() {
			check.NoError(b, validate())
		})
		measure(&permit, func() { gates.UpToPermit() })
		measure(&all, func() { gates.All() })
		measure(&machine, run)
	}
	b.ReportMetric(float64(permit)/float64(bare), "gates/validator")
	b.ReportMetric(float64(machine)/float64(all), "machine/gates")
}
