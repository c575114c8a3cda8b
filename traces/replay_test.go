package traces_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/tracestest"
)

func clock() string { return statestest.At }

// record runs a scenario with the recorder and returns the path and the bytes of its trace.
func record(tb testing.TB, m *states.Machine, s *statestest.Scenario) (string, []byte) {
	tb.Helper()
	path, doc, _ := tracestest.Record(tb, m, s.Run(), s.Entry(), clock)
	return path, doc
}

func TestEveryScenarioReplays(t *testing.T) {
	m := statestest.MustMachine(t)
	for _, s := range statestest.Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			path, doc := record(t, m, &s)
			trace, err := traces.Read(doc)
			if err != nil {
				t.Fatalf("Read() = %v", err)
			}
			run, err := tracestest.Replayer(m, s.Decider).Replay(trace)
			if err != nil {
				t.Fatalf("Replay() = %v", err)
			}
			if run.State() != s.State {
				t.Errorf("replayed to %s, want %s", run.State(), s.State)
			}
			info, err := os.Stat(path)
			check.NoError(t, err)
			if got := info.Mode().Perm(); got != 0o600 {
				t.Errorf("the trace's mode is %o, want 600", got)
			}
			left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
			if err != nil || len(left) != 1 {
				t.Errorf("the folder holds %v, want the trace alone", left)
			}
		})
	}
}

// TestReplayJudgesAnew gives a trace another policy than it was recorded with: every gate speaks
// again, so the first place that comes out otherwise is named.
func TestReplayJudgesAnew(t *testing.T) {
	s := statestest.Scenarios()[0]
	m := statestest.MustMachine(t)
	_, doc := record(t, m, &s)
	trace, err := traces.Read(doc)
	check.NoError(t, err)
	_, err = tracestest.Replayer(m, statestest.HoldAll{Until: "2026-11-21T10:00:00.000Z"}).Replay(trace)
	var d *traces.DivergenceError
	if !errors.As(err, &d) || d.Seq != 5 || d.Kind != traces.Different || d.Code() != "divergence_different" {
		t.Errorf("Replay() = %v, want a divergence_different at step 5", err)
	}
}

// TestNothingIsCompiledPerRun counts allocations: compiling the default rules alone takes more than
// a hundred thousand.
func TestNothingIsCompiledPerRun(t *testing.T) {
	const most = 1000
	m := statestest.MustMachine(t)
	s := statestest.Find(t, "eight-arguments")
	content := statestest.Content()
	content.Input.Rules = policy.DefaultRules()
	bundle := statestest.MustBundle(content, nil)
	got := testing.AllocsPerRun(100, func() {
		run := states.NewRun(statestest.RunID, s.Request, bundle)
		w := *s.World
		w.Listed = []states.Event{&states.ToolsListed{Servers: statestest.Listings(statestest.Page)}}
		h := traces.NewHeader(m, run)
		if _, err := m.Advance(context.Background(), run, w.Effects(), chained{traces.NewChain(&h)}); err != nil {
			t.Fatal(err)
		}
	})
	if got > most {
		t.Errorf("a run allocates %v times, want at most %d: something is compiled again", got, most)
	}
}

// chained links steps as a ledger does, and forgets them.
type chained struct{ *traces.Chain }

func (c chained) Append(_ context.Context, s states.Step) error {
	_ = c.Link(s, statestest.At)
	return nil
}
