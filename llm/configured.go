package llm

import (
	"pgfsm/internal/secret"
	"pgfsm/policy"
)

// Configured returns the planner and the summarizer that the operator's content names: the routes,
// a model, or both. key is the model's API key. Without a model, summaries are extracts.
func Configured(p *policy.Planner, key string, secrets *secret.Masker) (Planner, Summarizer, error) {
	if p.LLM == nil || p.Mode == policy.PlannerRouter {
		router, err := NewRouter(p.Routes, nil)
		return router, Extractive{}, err
	}
	model, err := NewModel(p.LLM, key, secrets)
	if err != nil {
		return nil, nil, err
	}
	if p.Mode == policy.PlannerLLM {
		return model, model, nil
	}
	router, err := NewRouter(p.Routes, model)
	return router, model, err
}
