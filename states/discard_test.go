package states_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/fsm"
	"pgfsm/internal/canonical"
	"pgfsm/states"
	"pgfsm/states/statestest"
)

// TestDiscardRecorder runs every scenario with a record and without: it comes to the same, by the same way and the same calls.
func TestDiscardRecorder(t *testing.T) {
	type end struct {
		Outcome states.Outcome
		Trail   []fsm.State
		Calls   []states.CallTool
	}
	m := statestest.MustMachine(t)
	advance := func(s *statestest.Scenario, run *states.Run, rec states.Recorder) end {
		o, err := m.Advance(context.Background(), run, s.Entry(), rec)
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		return end{o, run.Trail(), s.World.Calls}
	}
	without := statestest.Scenarios()
	for i, s := range statestest.Scenarios() {
		run := s.Run()
		want := advance(&s, run, new(statestest.Memory))
		got := advance(&without[i], states.NewRun(run.ID(), run.Request(), run.Bundle()), struct{ states.DiscardRecorder }{})
		if d := cmp.Diff(want, got, cmp.AllowUnexported(canonical.Object{})); d != "" {
			t.Errorf("%s: without a record it comes to something else (-with +without):\n%s", s.Name, d)
		}
	}
}

// TestNothingIsEncodedForDiscardRecorder looks at what a recorder gets that is, or only looks like, one that keeps nothing.
func TestNothingIsEncodedForDiscardRecorder(t *testing.T) {
	m := statestest.MustMachine(t)
	for _, tc := range []struct {
		name    string
		rec     func(seen *statestest.Memory) states.Recorder
		encoded bool
	}{
		{"one-that-keeps", func(seen *statestest.Memory) states.Recorder { return seen }, true},
		{"one-that-has-one-among-others", func(seen *statestest.Memory) states.Recorder {
			return struct {
				states.Recorder
				also states.DiscardRecorder
			}{Recorder: seen}
		}, true},
		{"one-that-is-one", func(seen *statestest.Memory) states.Recorder { return forgetful{seen: seen} }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var seen statestest.Memory
			s := statestest.Scenarios()[0]
			if _, err := m.Advance(context.Background(), s.Run(), s.Entry(), tc.rec(&seen)); err != nil {
				t.Fatal(err)
			}
			for i, step := range seen.Steps {
				if encoded := step.Facts != nil && step.Command != nil && step.Event != nil; encoded != tc.encoded {
					t.Errorf("step %d (%s) is spelled: %v, want %v", i, step.On, encoded, tc.encoded)
				}
			}
			if len(seen.Steps) == 0 {
				t.Error("no step was seen")
			}
		})
	}
}

// forgetful keeps nothing, and tells a test what it was given.
type forgetful struct {
	states.DiscardRecorder
	seen *statestest.Memory
}

func (f forgetful) Append(ctx context.Context, s states.Step) error { return f.seen.Append(ctx, s) }
