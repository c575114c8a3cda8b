package ledger_test

import (
	"context"
	"database/sql"
	"fmt"
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
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
	"pgfsm/traces/ledger/sqlite"
)

// crowd is how many runs are under way at the same time, where many are.
const crowd = 64

// An office is a ledger in a file and what its runs need. Everything but the calls is there at once.
type office struct {
	*desk
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
	o.desk, o.store = deskInFile(tb, path, ledgertest.NewClock(tb))
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
	out, err := o.Machine.Advance(context.Background(), run, rec.Door(o.ports()), rec)
	if err == nil && out.Type != states.TypePending {
		_, err = rec.Finish(context.Background(), out)
	}
	return run.ID(), err
}

// each does something n times, so many at the same time, and returns how long all took.
func each(tb testing.TB, n, together int, do func(i int) error) time.Duration {
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

// BenchmarkCalls plays allowed calls with all gates and both commits, one after the other and 64 at the same time, in turns; and beside
// them another gateway's way to keep its ledger, without any gate. The upstream takes as long as the name says.
func BenchmarkCalls(b *testing.B) {
	for _, takes := range []time.Duration{0, 2 * time.Millisecond, 10 * time.Millisecond} {
		b.Run("upstream="+takes.String(), func(b *testing.B) {
			o := newOffice(b, filepath.Join(b.TempDir(), "ledger.db"))
			o.takes = takes
			ten := newTen(b, filepath.Join(b.TempDir(), "ten.db"), takes)
			var one, many, tenOne, tenMany measure
			ours := func() error { _, err := o.run(o.allows); return err }
			for b.Loop() {
				for range 10 { // short turns: a machine whose speed drifts does not change the ratios
					one.turn(b, o.store, crowd/4, 1, ours)
					many.turn(b, o.store, 2*crowd, crowd, ours)
				}
				tenOne.turn(b, nil, crowd/8, 1, ten.call)
				tenMany.turn(b, nil, crowd, crowd, ten.call)
			}
			b.ReportMetric(one.rate(), "calls/s-at-1")
			b.ReportMetric(many.rate(), "calls/s-at-64")
			b.ReportMetric(many.rate()/one.rate(), "64/1")
			b.ReportMetric(one.flushes(), "flushes/call-at-1")
			b.ReportMetric(many.flushes(), "flushes/call-at-64")
			b.ReportMetric(tenOne.rate(), "ten-calls/s-at-1")
			b.ReportMetric(tenMany.rate(), "ten-calls/s-at-64")
			b.ReportMetric(many.rate()/tenMany.rate(), "64/ten-at-64")
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
	m.took += each(b, n, together, func(int) error { return do() })
	if s != nil {
		after = s.Stats()
	}
	m.n += n
	m.stats.Commits += after.Commits - before.Commits
}

func (m *measure) rate() float64 { return float64(m.n) / m.took.Seconds() }

func (m *measure) flushes() float64 { return float64(m.stats.Commits) / float64(m.n) }

// Ten is how another gateway keeps its ledger, for comparison: each call is ten transactions, each on a connection of its own that is
// opened for it, on a file with SQLite's own settings (rollback journal, every commit flushed).
type ten struct {
	path  string
	takes time.Duration
	next  atomic.Int64
}

func newTen(b *testing.B, path string, takes time.Duration) *ten {
	b.Helper()
	t := &ten{path: path, takes: takes}
	err := t.do("CREATE TABLE requests (id INTEGER PRIMARY KEY, status TEXT, args TEXT)",
		"CREATE TABLE decisions (id INTEGER PRIMARY KEY, request INTEGER, outcome TEXT)",
		"CREATE TABLE events (id INTEGER PRIMARY KEY, request INTEGER, type TEXT, payload TEXT)")
	check.NoError(b, err)
	return t
}

// do runs statements in one transaction on a connection that is there for it alone.
func (t *ten) do(statements ...string) error {
	db, err := sql.Open("sqlite", t.path+"?_pragma=busy_timeout(60000)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, s := range statements {
		if _, err := tx.Exec(s); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// call is what is written for one allowed call.
func (t *ten) call() error {
	id := t.next.Add(1)
	event := func(kind string) string {
		return fmt.Sprintf(`INSERT INTO events (request, type, payload) VALUES (%d, '%s', '{"policy_id":"policy-002"}')`, id, kind)
	}
	status := func(s string) string { return fmt.Sprintf("UPDATE requests SET status = '%s' WHERE id = %d", s, id) }
	before := []string{
		fmt.Sprintf(`INSERT INTO requests VALUES (%d, 'proposed', '{"policy_id":"policy-002"}')`, id),
		event("request.created"), event("risk.scored"), fmt.Sprintf("INSERT INTO decisions (request, outcome) VALUES (%d, 'allow')", id),
		event("decision.made"), status("allowed"), event("proxy.forwarding"),
	}
	after := []string{status("executed"), event("proxy.executed"), event("tool.result")}
	for _, s := range before {
		if err := t.do(s); err != nil {
			return err
		}
	}
	if t.takes > 0 {
		time.Sleep(t.takes)
	}
	for _, s := range after {
		if err := t.do(s); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkResume takes up runs that people have approved: claim, the record executed again, the world looked at, the call, its end.
func BenchmarkResume(b *testing.B) {
	for _, together := range []int{1, crowd} {
		b.Run(fmt.Sprintf("together=%d", together), func(b *testing.B) {
			o := newOffice(b, filepath.Join(b.TempDir(), "ledger.db"))
			p := traces.NewReplayer(o.Machine, nil)
			by := o.Approver(alice)
			world := ledger.World{Ports: func(*states.Run) *states.Live { return o.ports() }, Bundle: o.holds}
			var m measure
			b.ResetTimer()
			for b.Loop() {
				b.StopTimer()
				ids := make(chan string, 4*crowd)
				each(b, cap(ids), crowd, func(int) error {
					id, err := o.approved(by)
					ids <- id
					return err
				})
				b.StartTimer()
				m.turn(b, o.store, cap(ids), together, func() error {
					id := <-ids
					if err := o.Claim(context.Background(), id); err != nil {
						return err
					}
					got, err := o.Resume(context.Background(), p, id, world)
					if err == nil && got.Outcome.Type == states.TypeBlocked {
						err = fmt.Errorf("run %s: %s", id, got.Outcome.Reason)
					}
					return err
				})
			}
			b.ReportMetric(m.rate(), "resumed/s")
			b.ReportMetric(m.flushes(), "flushes/run")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// approved holds a run and has somebody approve it.
func (o *office) approved(by ledger.Caller) (string, error) {
	id, err := o.run(o.holds)
	if err != nil {
		return id, err
	}
	var q ledger.Request
	err = o.View(context.Background(), func(r ledger.Reader) (err error) {
		q, err = r.Request(id)
		return err
	})
	if err == nil {
		_, err = o.Vote(context.Background(), ledgertest.Ballot(q, by))
	}
	return id, err
}

func rowsOf(r *ledger.Report) int64 {
	return r.Entries + r.Requests + r.Blobs + r.Tokens
}
