package llm

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
