package main

import (
	"bytes"
	"context"
	"errors"
	"time"

	"pgfsm/llm"
	"pgfsm/policy"
	"pgfsm/states"
)

// completer puts the planner and the summarizer behind the machine's port.
type completer struct{ *app }

// Complete asks for the plan or the summary. That none came is an event like any other.
func (c completer) Complete(ctx context.Context, wanted *states.Complete) states.Event {
	var got llm.Completion
	var err error
	if wanted.Purpose == states.PurposeSummary {
		got, err = c.summary.Summarize(ctx, wanted.Request, wanted.Typed)
	} else {
		got, err = c.planner.Plan(ctx, wanted.Request, shownTo(wanted.Tools))
	}
	var exchanges []states.Exchange
	for _, x := range got.Exchanges {
		exchanges = append(exchanges, states.Exchange{Received: c.mask(x.Received), Sent: c.mask(x.Sent), Status: x.Status})
	}
	if err != nil {
		code, reason := whyNot(err)
		return &states.EffectFailed{
			Code: code, Effect: states.NotSent, Exchanges: exchanges, Reason: c.secrets.String(reason),
		}
	}
	if len(exchanges) == 0 {
		return &states.Completed{Content: c.mask(got.Content)}
	}
	return c.heard(exchanges)
}

// heard makes the event from the exchanges as they are recorded, with the operator's secrets masked, so that replay reads the
// same. Masking can spoil a response.
func (c completer) heard(exchanges []states.Exchange) states.Event {
	said, err := states.Heard(exchanges)
	if err != nil || !bytes.Equal(c.mask(said.Content), said.Content) || !bytes.Equal(c.mask(said.Refusal), said.Refusal) {
		return &states.EffectFailed{
			Code: policy.CodePlannerFailed, Effect: states.NotSent, Exchanges: exchanges,
			Reason: "The model's response holds a secret and cannot be read with the secret masked.",
		}
	}
	return said
}

// shownTo is what a planner learns of the effective allowlist.
func shownTo(allowed []*policy.Tool) []llm.Tool {
	tools := make([]llm.Tool, 0, len(allowed))
	for _, t := range allowed {
		tools = append(tools, llm.Tool{
			Server: t.Server, Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
		})
	}
	return tools
}

// whyNot names the code and the reason for a completion that did not come: whoever cancelled is told from what broke.
// The error is asked and not the context, whose deadline can pass before it says so.
func whyNot(err error) (policy.Code, string) {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return policy.CodeTimeout, "The run's time ran out while the model was asked."
	case errors.Is(err, context.Canceled):
		return policy.CodeCancelled, "The run was cancelled while the model was asked."
	case errors.Is(err, llm.ErrTimeout):
		return policy.CodeTimeout, err.Error() + " (planner.llm.timeout)"
	}
	return policy.CodePlannerFailed, err.Error()
}

// complete puts the planner and the summarizer into the app: the operator's routes, or a model, or both.
func (a *app) complete(key string) error {
	p := a.bundle.Content().Planner
	router, err := llm.NewRouter(p.Routes)
	if err != nil {
		return err
	}
	a.planner, a.summary = llm.PlanFunc(router.Plan), llm.SummarizeFunc(llm.Extractive{}.Summarize)
	if p.LLM == nil || p.Mode == policy.PlannerRouter {
		return nil
	}
	model, err := llm.NewModel(llm.Config{
		BaseURL: p.LLM.BaseURL, Model: p.LLM.Model, APIKey: key, MaxTokens: p.LLM.MaxTokens,
		Timeout: time.Duration(p.LLM.Timeout) * time.Millisecond, Secrets: a.secrets,
	})
	if err != nil {
		return err
	}
	a.planner, a.summary = llm.Auto(router, model), model
	if p.Mode == policy.PlannerLLM {
		a.planner = model
	}
	return nil
}
