package endtoend

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json"

	"pgfsm/llm"
)

// Tokens is the cost of completions, as the endpoint reports it.
type Tokens struct {
	Completions int `json:"completions"` // responses with status 200
	Counted     int `json:"counted"`     // completions whose tokens the endpoint reported
	Prompt      int `json:"prompt"`
	Completion  int `json:"completion"`
}

func (t *Tokens) add(o Tokens) {
	t.Completions += o.Completions
	t.Counted += o.Counted
	t.Prompt += o.Prompt
	t.Completion += o.Completion
}

// addUsage adds the usage of a response. A response without two whole numbers is not counted.
func (t *Tokens) addUsage(response []byte) {
	t.Completions++
	var doc struct {
		Usage struct {
			Prompt     *uint32 `json:"prompt_tokens"`
			Completion *uint32 `json:"completion_tokens"`
		} `json:"usage"`
	}
	if json.Unmarshal(response, &doc) != nil || doc.Usage.Prompt == nil || doc.Usage.Completion == nil {
		return
	}
	t.Counted++
	t.Prompt += int(*doc.Usage.Prompt)
	t.Completion += int(*doc.Usage.Completion)
}

// A tokenMeter adds up the tokens of one run, which asks for one completion after the other.
type tokenMeter struct {
	planner    llm.Planner
	summarizer llm.Summarizer
	tokens     Tokens
}

// Plan implements [llm.Planner].
func (m *tokenMeter) Plan(ctx context.Context, request string, allowed []llm.Tool) (llm.Completion, error) {
	completion, err := m.planner.Plan(ctx, request, allowed)
	return m.countTokens(completion), err
}

// Summarize implements [llm.Summarizer].
func (m *tokenMeter) Summarize(ctx context.Context, request string, typed []byte) (llm.Completion, error) {
	completion, err := m.summarizer.Summarize(ctx, request, typed)
	return m.countTokens(completion), err
}

func (m *tokenMeter) countTokens(completion llm.Completion) llm.Completion {
	for _, exchange := range completion.Exchanges {
		if exchange.Status == http.StatusOK {
			m.tokens.addUsage(exchange.Received)
		}
	}
	return completion
}
