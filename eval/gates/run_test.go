package gates

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/eval"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/golden"
	"pgfsm/policy/corpus"
)

// suiteNames are the suites in the order of the result.
func suiteNames() (names []string) {
	for _, d := range definitions() {
		names = append(names, d.name)
	}
	return names
}

// TestNothingSlips is the evaluation itself. The committed result is that of today; run with -update, and look at what changed.
func TestNothingSlips(t *testing.T) {
	r, err := Run(t.Context())
	check.NoError(t, err)
	var names []string
	for _, s := range r.Suites {
		names = append(names, s.Name)
		if s.Cases == 0 || s.Slips != 0 || s.Counted == "" {
			t.Errorf("%s: %d cases, %d slips: %+v", s.Name, s.Cases, s.Slips, s.Slipped)
		}
	}
	if diff := cmp.Diff(suiteNames(), names); diff != "" {
		t.Errorf("suites (-want +got):\n%s", diff)
	}

	path := filepath.Join(t.TempDir(), "result.json")
	check.NoError(t, eval.WriteResult(path, r))
	golden.File(t, "../results/offline_gate_eval.json", clitest.Read(t, path))
}

// TestAnEvaluationThatIsStopped ends with the cause, and with no report that could be taken for a whole one.
func TestAnEvaluationThatIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if r, err := Run(ctx); !errors.Is(err, context.Canceled) || r != nil {
		t.Errorf("Run() = %v, %v, want %v", r, err, context.Canceled)
	}
}

// TestCorpora holds the corpora to what the suites assume.
func TestCorpora(t *testing.T) {
	runs, err := corpus.Load[corpus.Run]("runs")
	check.NoError(t, err)
	outputs, err := corpus.Load[corpus.Run]("outputs")
	check.NoError(t, err)
	worlds, err := corpus.Worlds()
	check.NoError(t, err)
	delete(worlds, "agreed") // that of approvals
	for _, c := range runs {
		delete(worlds, c.World)
	}
	for _, c := range outputs {
		delete(worlds, c.World)
	}
	if len(worlds) > 0 {
		t.Errorf("no case is in the worlds %v", worlds)
	}
}

// evaluates makes an evaluation of the subject, and the plain scene.
func evaluates(tb testing.TB, s subject) (*evaluation, *scene) {
	tb.Helper()
	e, err := newEvaluation(s)
	check.NoError(tb, err)
	plain, err := newScene()
	check.NoError(tb, err)
	return e, plain
}
