package llm

import "context"

// Auto plans by the operator's routes and asks the model when none matches. Without a model the router's own question
// is the plan. A route that matches never reaches the model, not even when its plan will be refused.
func Auto(router *Router, model Planner) Planner {
	if model == nil {
		return PlanFunc(router.Plan)
	}
	return auto{router, model}
}

type auto struct {
	router *Router
	model  Planner
}

func (a auto) Plan(ctx context.Context, request string, allowed []Tool) (Completion, error) {
	if err := ctx.Err(); err != nil {
		return Completion{}, err
	}
	if plan, ok := a.router.Match(request); ok {
		return Completion{Content: plan}, nil
	}
	return a.model.Plan(ctx, request, allowed)
}
