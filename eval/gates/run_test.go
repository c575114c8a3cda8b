package gates

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy/corpus"
)

const committed = "../results/offline_gate_eval.json"

var update = flag.Bool("update", false, "write the committed result")

// TestNothingSlips is the evaluation itself. The committed result is that of today; run with -update, and look at what changed.
func TestNothingSlips(t *testing.T) {
	r, err := Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range r.Suites {
		names = append(names, s.Name)
		if s.Cases == 0 || s.Passed != s.Cases || s.Slips != 0 || s.Counted == "" {
			t.Errorf("%s: %d cases, %d passed, %d slips: %+v", s.Name, s.Cases, s.Passed, s.Slips, s.Slipped)
		}
		seen := make(map[string]bool)
		for _, c := range s.Results {
			if seen[c.ID] {
				t.Errorf("%s has the case %q twice", s.Name, c.ID)
			}
			seen[c.ID] = true
		}
	}
	if diff := cmp.Diff(Names(), names); diff != "" {
		t.Errorf("suites (-want +got):\n%s", diff)
	}

	doc, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(committed, doc, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(committed)
	if err != nil || !bytes.Equal(doc, want) {
		t.Errorf("the result differs from %s: %v", committed, err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	worlds := setups()
	for _, c := range runs {
		delete(worlds, c.World)
	}
	if len(worlds) > 0 {
		t.Errorf("no run is in the worlds %v", worlds)
	}
	requests, err := corpus.Load[corpus.Request]("requests")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range requests {
		if c.Core != "" && !strings.Contains(strings.ToLower(c.Text), c.Core) {
			t.Errorf("the request %s does not hold its core %q", c.ID, c.Core)
		}
	}
}

func evaluates(t *testing.T, s subject) *evaluation {
	t.Helper()
	e, err := newEvaluation(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
