package runner_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"pgfsm/fsm"
	"pgfsm/internal/runner"
	"pgfsm/states"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// ask asks the question of the demo, which must be recorded.
func ask(t *testing.T, r *runner.Runner) runner.Result {
	t.Helper()
	got, err := r.Run(t.Context(), runner.Request{Actor: "local:tester", Kind: states.KindAsk, Text: []byte(question)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestNew(t *testing.T) {
	if _, err := runner.New(runner.Options{}); err == nil {
		t.Error("a runner that records nowhere was made, and nobody asked for that")
	}
}

// TestRun takes a question to its answer, wherever it is recorded.
func TestRun(t *testing.T) {
	for _, tt := range []struct {
		name   string
		record func(*stage)
		check  func(*testing.T, *stage, runner.Result)
	}{
		{"in-a-store-that-is-not-a-file", func(s *stage) { s.options.Ledger = s.open() }, func(t *testing.T, s *stage, got runner.Result) {
			if q := request(t, s.open(), got.Run.ID()); q.Head != got.Head || q.Status != ledger.Executed {
				t.Errorf("the ledger has the head %s of a run that is %s, want %s", q.Head, q.Status, got.Head)
			}
		}},
		{"nowhere", func(s *stage) { s.options.Unrecorded = true }, func(*testing.T, *stage, runner.Result) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, nil)
			tt.record(s)
			r := newRunner(t, s.options)
			var passed []fsm.State
			got, err := r.Run(t.Context(), runner.Request{Actor: "local:tester", Kind: states.KindAsk, Text: []byte(question)},
				func(_ *states.Run, step states.Step) { passed = append(passed, step.To) })
			if err != nil || got.Outcome.Type != states.TypeSummary && got.Outcome.Type != states.TypeToolResult || s.calls() != 1 {
				t.Fatalf("%+v, %v, %d calls", got.Outcome, err, s.calls())
			}
			if !slices.Equal(passed, got.Run.Trail()[1:]) {
				t.Errorf("watched %v, want %v", passed, got.Run.Trail()[1:])
			}
			tt.check(t, s, got)
		})
	}
}

// TestRunHeld: a held call waits in the store, and is made once when it is approved.
func TestRunHeld(t *testing.T) {
	t.Parallel()
	s := newStage(t, hold)
	r, l := s.runner(), s.open()
	got := ask(t, r)
	id := got.Run.ID()
	if got.Outcome.Type != states.TypePending || s.calls() != 0 {
		t.Fatalf("%+v, %d calls", got.Outcome, s.calls())
	}
	if ids, err := r.Undecided(t.Context()); err != nil || !slices.Equal(ids, []string{id}) {
		t.Errorf("Undecided() = %v, %v", ids, err)
	}
	if _, err := r.Resume(t.Context(), id, nil); !errors.Is(err, ledger.ErrUndecided) {
		t.Errorf("Resume() of an undecided run: %v", err)
	}
	if _, err := r.Await(t.Context(), id, time.Millisecond, nil); !errors.Is(err, runner.ErrWaiting) {
		t.Errorf("Await() of an undecided run: %v", err)
	}
	vote(t, l, id, got.Run.HeldCall().Binding, token(t, l, "alice@example.com", ledger.RoleApprover), true)
	if ids, err := s.runner().Approved(t.Context()); err != nil || !slices.Equal(ids, []string{id}) {
		t.Errorf("Approved() = %v, %v", ids, err)
	}
	for range 2 { // the second time it is returned as it ended
		after, err := s.runner().Await(t.Context(), id, patience, nil)
		if err != nil || after.Outcome.Effect != states.EffectDone || s.calls() != 1 {
			t.Errorf("%+v, %v, %d calls", after.Outcome, err, s.calls())
		}
		if q := request(t, l, id); q.Head != after.Head {
			t.Errorf("the ledger has the head %s, want %s", q.Head, after.Head)
		}
	}
}

// TestRunUnrecorded: without a record of it no call is made, and the result says how far the run came.
func TestRunUnrecorded(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	failing := s.memory.Open()
	failing.Fail = ledgertest.FailAt(ledgertest.Commit, 0, ledger.ErrUnavailable)
	l, err := ledger.Open(t.Context(), failing, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	s.options.Ledger = l
	got, err := newRunner(t, s.options).Run(context.Background(), runner.Request{Actor: "local:tester", Kind: states.KindAsk, Text: []byte(question)}, nil)
	if !errors.Is(err, ledger.ErrUnavailable) || got.Outcome.Code != "record_failed" || got.Outcome.Effect != states.NotSent || s.calls() != 0 {
		t.Errorf("%+v, %v, %d calls", got.Outcome, err, s.calls())
	}
}
