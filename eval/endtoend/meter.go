package endtoend

import (
	"context"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/canonical"
	"pgfsm/llm"
)

// Tokens is the cost of completions, as far as the endpoint reports it. One run asks for one completion after the other.
type Tokens struct {
	Completions int   `json:"completions"` // completions that were requested
	Counted     int   `json:"counted"`     // completions whose cost the endpoint reported
	Prompt      int64 `json:"prompt"`
	Completion  int64 `json:"completion"`
}

func (t *Tokens) add(o Tokens) {
	t.Completions += o.Completions
	t.Counted += o.Counted
	t.Prompt += o.Prompt
	t.Completion += o.Completion
}

// meteredPlanner counts the cost of a planner's completions.
type meteredPlanner struct {
	tokens *Tokens
	next   llm.Planner
}

func (p meteredPlanner) Plan(ctx context.Context, request string, allowed []llm.Tool) (llm.Completion, error) {
	got, err := p.next.Plan(ctx, request, allowed)
	p.tokens.count(got)
	return got, err
}

// meteredSummarizer counts the cost of a summarizer's completions.
type meteredSummarizer struct {
	tokens *Tokens
	next   llm.Summarizer
}

func (s meteredSummarizer) Summarize(ctx context.Context, request string, typed []byte) (llm.Completion, error) {
	got, err := s.next.Summarize(ctx, request, typed)
	s.tokens.count(got)
	return got, err
}

// maxTokens is the largest count that is believed of one completion: an endpoint can write any number.
const maxTokens = 100_000_000

func (t *Tokens) count(got llm.Completion) {
	for _, x := range got.Exchanges {
		t.Completions++
		var doc struct {
			Usage *struct {
				Prompt     *int64 `json:"prompt_tokens"`
				Completion *int64 `json:"completion_tokens"`
			} `json:"usage"`
		}
		if canonical.Check(x.Received, 0) != nil || json.Unmarshal(x.Received, &doc) != nil || doc.Usage == nil {
			continue
		}
		if prompt, completion := doc.Usage.Prompt, doc.Usage.Completion; plausible(prompt) && plausible(completion) {
			t.Counted++
			t.Prompt += *prompt
			t.Completion += *completion
		}
	}
}

func plausible(n *int64) bool { return n != nil && *n >= 0 && *n <= maxTokens }
