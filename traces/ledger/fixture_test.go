package ledger_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
	"pgfsm/traces/ledger/sqlite"
	"pgfsm/traces/tracestest"
)

const (
	alice = ledgertest.Alice
	bob   = ledgertest.Bob
	carol = ledgertest.Carol
	dave  = ledgertest.Dave
)

func TestMain(m *testing.M) { os.Exit(ledgertest.Main(m)) }

// A fixture is a ledger of a test.
type fixture struct{ *ledgertest.Fixture }

func newFixture(tb testing.TB) *fixture {
	tb.Helper()
	return &fixture{ledgertest.New(tb)}
}

// fixtureAt is a process that has the store open.
func fixtureAt(tb testing.TB, store ledger.Store, clock *ledgertest.Clock) *fixture {
	tb.Helper()
	return &fixture{ledgertest.Open(tb, store, clock)}
}

// fixtureInFile is a process that has a ledger's file open.
func fixtureInFile(tb testing.TB, path string, clock *ledgertest.Clock) (*fixture, *sqlite.Store) {
	tb.Helper()
	store, err := sqlite.Open(path)
	check.NoError(tb, err)
	return fixtureAt(tb, store, clock), store
}

// other is another process with the same ledger.
func (d *fixture) other() *fixture { return fixtureAt(d.TB, d.Store.Open(), d.Clock) }

func (d *fixture) replayer(decider policy.Decider) *traces.Replayer {
	return tracestest.Replayer(d.Machine, decider)
}

// begin begins a scenario's run under an id.
func (d *fixture) begin(id string, s *statestest.Scenario) (*states.Run, *ledger.RunRecorder) {
	run := states.NewRun(id, s.Request, statestest.MustBundle(s.Content, s.Decider))
	return run, d.BeginRun(run, true)
}

// play takes a scenario's run as far as it goes, as the command does.
func (d *fixture) play(id string, s *statestest.Scenario) (states.Outcome, canonical.Digest, error) {
	run, rec := d.begin(id, s)
	o, err := d.Machine.Advance(context.Background(), run, rec.Effects(s.Entry()), rec)
	if err != nil || o.Waits() {
		if err != nil {
			rec.Abandon()
		}
		return o, "", err
	}
	head, err := rec.Finish(context.Background(), o)
	return o, head, err
}

// types are the types of a run's events, in order.
func (d *fixture) types(id string) (all []ledger.Type) {
	d.TB.Helper()
	d.Inspect(func(r ledger.Reader) error {
		for e, err := range ledger.EventsOf(r, id) {
			if err != nil {
				return err
			}
			all = append(all, e.Type)
		}
		return nil
	})
	return all
}

// trace writes the run's trace, reads it, and executes it again.
func (d *fixture) trace(id string, o states.Outcome, decider policy.Decider) *traces.Trace {
	d.TB.Helper()
	var doc []byte
	d.Inspect(func(r ledger.Reader) error {
		var err error
		doc, err = ledger.Trace(context.Background(), r, id, d.replayer(decider))
		return err
	})
	trace, err := traces.Read(doc)
	if err != nil {
		d.TB.Fatalf("Read() = %v", err)
	}
	if _, err := d.replayer(decider).Replay(trace); err != nil {
		d.TB.Fatalf("Replay() = %v", err)
	}
	return trace
}

// vote casts a vote about what the run waits for.
func (d *fixture) vote(id string, by ledger.Caller, approve bool) {
	d.TB.Helper()
	v := ledgertest.Ballot(d.Run(id), by)
	v.Approve = approve
	d.Cast(v)
}

// alike is the error of a verification, or what was not decided as it was recorded.
func alike(report ledger.Report, err error) error {
	if err == nil && report.Deep.FirstOtherwise != nil {
		err = report.Deep.FirstOtherwise
	}
	if err == nil && report.Deep.FirstUnjudged != nil {
		err = report.Deep.FirstUnjudged
	}
	if err == nil && report.Deep.OtherTrace > 0 {
		err = fmt.Errorf("%w: %d runs have another trace", ledger.ErrTampered, report.Deep.OtherTrace)
	}
	return err
}
