package ledger_test

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger/ledgertest"
	"pgfsm/traces/ledger/sqlite"
)

// crowd is how many runs are under way at the same time, where many are.
const crowd = 64

// An office is a ledger in a file and what its runs need. Everything but the calls is there at once.
type office struct {
	*fixture
	store  *sqlite.Store
	allows *policy.Bundle // a policy allows the call
	holds  *policy.Bundle // a policy holds it for an hour
	listed states.Event
	takes  time.Duration // of the upstream, for one call
}

func newOffice(tb testing.TB, path string) *office {
	tb.Helper()
	listed, err := states.DecodeShared(canonical.MustSorted(&states.ToolsListed{
		Happened: "tools_listed", Servers: statestest.Listings(statestest.Page),
	}))
	check.NoError(tb, err)
	allows := statestest.Content()
	allows.Policy = statestest.Policies(rules.Policy{ID: "reads", Effect: rules.Allow, Reason: "Reading is fine."})
	o := &office{listed: listed, allows: statestest.MustBundle(allows, nil), holds: statestest.MustBundle(ledgertest.Holding(1), nil)}
	o.fixture, o.store = fixtureInFile(tb, path, ledgertest.NewClock(tb))
	o.Clock.ToNow()
	return o
}

// ports are the world of one run. The upstream has its time, and every call gets it whole.
func (o *office) ports() *states.Live {
	w := statestest.NewWorld()
	w.Listed = []states.Event{o.listed, o.listed}
	return &states.Live{Tools: w, Completer: w, Caller: slow{w, o.takes}}
}

type slow struct {
	states.Caller
	takes time.Duration
}

func (s slow) Call(ctx context.Context, c *states.CallTool) states.Event {
	if s.takes > 0 {
		time.Sleep(s.takes)
	}
	return s.Caller.Call(ctx, c)
}

// run plays a run as the command does, and returns its id.
func (o *office) run(bundle *policy.Bundle) (string, error) {
	return o.ask(bundle, statestest.Question)
}

// ask is run for any question.
func (o *office) ask(bundle *policy.Bundle, question string) (string, error) {
	ask := states.Request{
		Actor: "local:" + carol, At: o.Clock.Now().Format(time.RFC3339), Kind: states.KindAsk, Text: canonical.Text(question),
	}
	run := states.NewRun(ledgertest.NewID(o.TB), ask, bundle)
	rec := o.Begin(traces.NewHeader(o.Machine, run), run)
	out, err := o.Machine.Advance(context.Background(), run, rec.Effects(o.ports()), rec)
	if err == nil && out.Type != states.TypePending {
		_, err = rec.Finish(context.Background(), out)
	}
	return run.ID(), err
}

// forEach does something n times, so many at the same time, and returns how long all took.
func forEach(tb testing.TB, n, together int, do func(i int) error) time.Duration {
	tb.Helper()
	var all sync.WaitGroup
	var next atomic.Int64
	begun := time.Now()
	for range together {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if tb.Failed() {
		tb.FailNow()
	}
	return time.Since(begun)
}

// BenchmarkCalls plays allowed calls with all gates and both commits, one after the other and 64 at the same time, in turns.
// The upstream takes as long as the name says.
func BenchmarkCalls(b *testing.B) {
	for _, takes := range []time.Duration{0, 2 * time.Millisecond, 10 * time.Millisecond} {
		b.Run("upstream="+takes.String(), func(b *testing.B) {
			o := newOffice(b, filepath.Join(b.TempDir(), "ledger.db"))
			o.takes = takes
			var one, many measure
			ours := func() error { _, err := o.run(o.allows); return err }
			for b.Loop() {
				for range 10 { // short turns: a machine whose speed drifts does not change the ratios
					one.turn(b, o.store, crowd/4, 1, ours)
					many.turn(b, o.store, 2*crowd, crowd, ours)
				}
			}
			b.ReportMetric(one.rate(), "calls/s-at-1")
			b.ReportMetric(many.rate(), "calls/s-at-64")
			b.ReportMetric(many.rate()/one.rate(), "64/1")
			b.ReportMetric(one.flushes(), "flushes/call-at-1")
			b.ReportMetric(many.flushes(), "flushes/call-at-64")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// A measure sums up turns.
type measure struct {
	n     int
	took  time.Duration
	stats sqlite.Stats
}

// turn does something n times, so many at the same time. The store, if there is one, counts.
func (m *measure) turn(b *testing.B, s *sqlite.Store, n, together int, do func() error) {
	b.Helper()
	var before, after sqlite.Stats
	if s != nil {
		before = s.Stats()
	}
	m.took += forEach(b, n, together, func(int) error { return do() })
	if s != nil {
		after = s.Stats()
	}
	m.n += n
	m.stats.Commits += after.Commits - before.Commits
}

func (m *measure) rate() float64 { return float64(m.n) / m.took.Seconds() }

func (m *measure) flushes() float64 { return float64(m.stats.Commits) / float64(m.n) }
