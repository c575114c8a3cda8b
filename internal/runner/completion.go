package runner

import (
	"bytes"
	"context"
	"errors"

	"pgfsm/internal/canonical"
	"pgfsm/llm"
	"pgfsm/policy"
	"pgfsm/states"
)

// completion is the port to the planner and the summarizer.
type completion struct{ configured *ConfiguredRunner }

// Complete asks the model for the plan or the summary. A failed completion is an event, too.
func (c completion) Complete(ctx context.Context, wanted *states.Complete) states.Event {
	var completion llm.Completion
	var err error
	if wanted.Purpose == states.PurposeSummary {
		completion, err = c.configured.Summarizer.Summarize(ctx, wanted.Request, wanted.Typed)
	} else {
		completion, err = c.configured.Planner.Plan(ctx, wanted.Request, plannerTools(wanted.Tools))
	}

	var exchanges []states.Exchange
	for _, x := range completion.Exchanges {
		exchanges = append(exchanges, states.Exchange{Received: c.configured.mask(x.Received),
			Sent: c.configured.mask(x.Sent), Status: x.Status})
	}

	if err != nil {
		code, reason := completionFailure(err)
		return &states.EffectFailed{
			Code:      code,
			Effect:    states.NotSent,
			Exchanges: exchanges,
			Reason:    c.configured.Secrets.String(reason),
		}
	}
	if len(exchanges) == 0 {
		return &states.Completed{Content: c.configured.mask(completion.Content)}
	}

	return c.completedEvent(exchanges)
}

// completedEvent makes the event from the masked exchanges, as replay does. Masking can make a
// response unreadable.
func (c completion) completedEvent(exchanges []states.Exchange) states.Event {
	event, err := states.CompletedBy(exchanges)
	if err != nil || !bytes.Equal(c.configured.mask(event.Content), event.Content) ||
		!bytes.Equal(c.configured.mask(event.Refusal), event.Refusal) {
		return &states.EffectFailed{
			Code:      policy.CodePlannerFailed,
			Effect:    states.NotSent,
			Exchanges: exchanges,
			Reason:    "The model's response holds a secret and cannot be read with the secret masked.",
		}
	}
	return event
}

// plannerTools returns the effective allowlist as a planner sees it.
func plannerTools(allowed []*policy.Tool) []llm.Tool {
	tools := make([]llm.Tool, 0, len(allowed))
	for _, t := range allowed {
		tools = append(tools, llm.Tool{
			Server:      t.Server,
			Name:        t.Name,
			Title:       t.Title,
			Description: t.Description,
			InputSchema: t.InputSchema,
		})
	}
	return tools
}

// completionFailure returns the code and the reason of a failed completion. It inspects the error
// and not the context: a deadline can pass before the context reports it.
func completionFailure(err error) (policy.Code, string) {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return interruptionOf(err, "the model was asked")
	case errors.Is(err, llm.ErrTimeout):
		return policy.CodeTimeout, err.Error() + " (planner.llm.timeout)"
	}
	return policy.CodePlannerFailed, err.Error()
}

// mask removes the operator's secrets from the text of a server or a model, before the text is
// recorded. A text without secrets is unchanged, byte for byte.
func (r *ConfiguredRunner) mask(text []byte) canonical.Text { return r.Secrets.Bytes(text) }
