package gates

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states/statestest"
)

// bareGates judges a plan by every gate up to the permit, without the machine, the generator and the second reader.
func bareGates(b *policy.Bundle, c *policy.Catalog, doc []byte) policy.Verdict {
	if v := b.Screen(question); !v.Allows() {
		return v
	}
	p, v := policy.ReadPlan(doc, b.Limits())
	if !v.Allows() || p.Type != policy.PlanCallTool {
		return v
	}
	tool, v := b.Validate(c, p, nil)
	if !v.Allows() {
		return v
	}
	if v := b.Authorize(tool, nil, tool.Digest, p.Args, nil); !v.Allows() {
		return v
	}
	return b.Decide(policy.Question{Server: p.Server, Tool: tool, Arguments: p.Args, Now: asked}).Verdict
}

// BenchmarkRatios measures in turns all that the evaluation does for a plan (make it, read it a second time, take it through
// the machine, compare and count), with one job and with as many as there are cores, against the gates up to the permit on the
// same plans, and against the gates' own benchmark, which is that of a plan with eight arguments that passes them all.
func BenchmarkRatios(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as the command does
	e, err := newEvaluation(b.Context(), Options{Plans: 1, Seed: DefaultSeed, Jobs: runtime.GOMAXPROCS(0)}, real())
	if err != nil {
		b.Fatal(err)
	}
	f, err := e.planFuzzer()
	if err != nil {
		b.Fatal(err)
	}
	bundle, err := policy.Compile(content())
	if err != nil {
		b.Fatal(err)
	}
	catalog := bundle.Catalog(canonical.Sum("catalog", []byte(pageKB+pageDesk)), listed(pageKB, pageDesk).Servers)
	own := statestest.NewGates()
	const turn = 4 * chunk
	var single, all, same, full time.Duration
	at := 0
	measure := func(sum *time.Duration, do func()) {
		start := time.Now()
		do()
		*sum += time.Since(start)
	}
	for b.Loop() {
		docs := make([][]byte, turn)
		for i := range docs {
			_, s := f.sample(at + i)
			docs[i] = s.input
		}
		counted := func(_, from, to int) {
			for _, c := range f.count(at+from, at+to).classes {
				if c.Slips > 0 {
					b.Error("a plan slips")
				}
			}
		}
		measure(&single, func() { counted(0, 0, turn) })
		measure(&all, func() { e.each(turn, chunk/4, counted) })
		measure(&same, func() {
			for _, doc := range docs {
				bareGates(bundle, catalog, doc)
			}
		})
		measure(&full, func() {
			for range docs {
				own.UpToPermit()
			}
		})
		at += turn
	}
	b.ReportMetric(float64(single)/float64(same), "one-job/gates-on-the-same-plans")
	b.ReportMetric(float64(single)/float64(full), "one-job/gates-benchmark")
	b.ReportMetric(float64(all)/float64(full), "all-cores/gates-benchmark")
	b.ReportMetric(float64(all.Nanoseconds())/float64(at), "ns/plan")
}
