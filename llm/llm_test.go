package llm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestScripted(t *testing.T) {
	script := Scripted{"known": []byte(`{"not":"a plan"`), "empty": {}}
	for _, tt := range []struct{ name, request, want string }{
		{"known-request-is-answered-as-written", "known", `{"not":"a plan"`},
		{"empty-answer", "empty", ""},
		{"unknown-request-says-nothing", "Known", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(script.Plan(tt.request, nil)); got != tt.want {
				t.Errorf("Plan(%q) = %q, want %q", tt.request, got, tt.want)
			}
		})
	}
	t.Run("caller-cannot-change-the-script", func(t *testing.T) {
		script.Plan("known", nil)[0] = 'x'
		if got := script.Plan("known", nil)[0]; got != '{' {
			t.Errorf("Plan after the caller wrote to its bytes begins with %q, want {", got)
		}
	})
	t.Run("zero-script-says-nothing", func(t *testing.T) {
		if got := Scripted(nil).Plan("known", nil); got != nil {
			t.Errorf("Plan = %q, want nil", got)
		}
	})
}

func TestPlanFunc(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	say := func(request string, allowed []Tool) []byte { return []byte(request + "→" + allowed[0].Name) }
	for _, tt := range []struct {
		name    string
		planner Planner
		ctx     context.Context
		want    Completion
		err     error
	}{
		{"says-what-the-function-says", PlanFunc(say), t.Context(), Completion{Content: []byte("q→t")}, nil},
		{"nil-says-nothing", PlanFunc(nil), t.Context(), Completion{}, nil},
		{"cancelled-says-nothing", PlanFunc(say), done, Completion{}, context.Canceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.planner.Plan(tt.ctx, "q", []Tool{{Server: "s", Name: "t"}})
			if !errors.Is(err, tt.err) || !cmp.Equal(got, tt.want) {
				t.Errorf("Plan = %+v, %v, want %+v, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestSummarizeFunc(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name       string
		summarizer Summarizer
		ctx        context.Context
		want       Completion
		err        error
	}{
		{"says-what-the-function-says", SummarizeFunc(Extractive{}.Summarize), t.Context(),
			Completion{Content: []byte(`{"items":[]}`)}, nil},
		{"nil-says-nothing", SummarizeFunc(nil), t.Context(), Completion{}, nil},
		{"cancelled-says-nothing", SummarizeFunc(Extractive{}.Summarize), done, Completion{}, context.Canceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.summarizer.Summarize(tt.ctx, "q", []byte(`{}`))
			if !errors.Is(err, tt.err) || !cmp.Equal(got, tt.want) {
				t.Errorf("Summarize = %+v, %v, want %+v, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

// TestFuzzSeeds fails when a fuzz target has lost its corpus: it would go on passing and look at nothing.
func TestFuzzSeeds(t *testing.T) {
	seeds := func(target string) int {
		files, _ := os.ReadDir(filepath.Join("testdata", "fuzz", target))
		return len(files)
	}
	for _, target := range []string{"FuzzRouter", "FuzzRouteArgs", "FuzzExtractive", "FuzzSentences", "FuzzDataLine"} {
		if n := seeds(target); n < 3 {
			t.Errorf("%s has %d seeds, want at least 3", target, n)
		}
	}
	if n := seeds("FuzzLost"); n != 0 {
		t.Errorf("a target without a corpus has %d seeds, want 0", n)
	}
}
