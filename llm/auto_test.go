package llm

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pgfsm/policy"
)

func TestAuto(t *testing.T) {
	router := mustRouter(t, policy.Route{
		ID: "id", Pattern: `policy-(\d+)`, Server: "kb", Tool: "fetch", Args: []byte(`{"n":"${1}"}`),
	})
	broken := errors.New("broken")
	done, cancel := context.WithCancel(t.Context())
	cancel()
	says := PlanFunc(func(request string, _ []Tool) []byte { return []byte("model: " + request) })
	for _, tt := range []struct {
		name    string
		router  *Router
		model   Planner
		ctx     context.Context
		request string
		want    string
		err     error
	}{
		{"route-matches", router, failing{broken}, t.Context(), "policy-2", `{"args":{"n":"2"},"server":"kb"`, nil},
		{"no-route", router, says, t.Context(), "hello", "model: hello", nil},
		{"no-route-model-fails", router, failing{broken}, t.Context(), "hello", "", broken},
		{"no-router", nil, says, t.Context(), "policy-2", "model: policy-2", nil},
		{"not-utf8", router, says, t.Context(), "policy-2\xff", "model: policy-2\xff", nil},
		{"no-model-route-matches", router, nil, t.Context(), "policy-2", `{"args":{"n":"2"},"server":"kb"`, nil},
		{"no-model-no-route", router, nil, t.Context(), "hello", `{"answer":"No route matches`, nil},
		{"nothing-at-all", nil, nil, t.Context(), "hello", `{"answer":"No route matches`, nil},
		{"cancelled", router, says, done, "policy-2", "", context.Canceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Auto(tt.router, tt.model).Plan(tt.ctx, tt.request, nil)
			if !errors.Is(err, tt.err) || !strings.HasPrefix(string(got.Content), tt.want) ||
				tt.err != nil && got.Content != nil {
				t.Errorf("Plan(%q) = %s, %v, want %s, %v", tt.request, got.Content, err, tt.want, tt.err)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Plan(context.Context, string, []Tool) (Completion, error) {
	return Completion{}, f.err
}
