package endtoend

import (
	"context"
	"sync"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/canonical"
	"pgfsm/llm"
)

// Tokens is the cost of completions, as far as the endpoint reports it.
type Tokens struct {
	Completions int   `json:"completions"` // that were asked for
	Counted     int   `json:"counted"`     // of them: those whose cost the endpoint reported
	Prompt      int64 `json:"prompt"`
	Completion  int64 `json:"completion"`
}

func (t *Tokens) add(o Tokens) {
	t.Completions += o.Completions
	t.Counted += o.Counted
	t.Prompt += o.Prompt
	t.Completion += o.Completion
}

// A Meter counts the tokens of what is asked through it. It is safe for concurrent use.
type Meter struct {
	mu  sync.Mutex
	sum Tokens
}

// Tokens returns the sum so far.
func (m *Meter) Tokens() Tokens {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sum
}

// Planner counts what a planner's completions cost.
func (m *Meter) Planner(next llm.Planner) llm.Planner { return meteredPlanner{m, next} }

// Summarizer counts what a summarizer's completions cost.
func (m *Meter) Summarizer(next llm.Summarizer) llm.Summarizer { return meteredSummarizer{m, next} }

type meteredPlanner struct {
	meter *Meter
	next  llm.Planner
}

func (p meteredPlanner) Plan(ctx context.Context, request string, allowed []llm.Tool) (llm.Completion, error) {
	got, err := p.next.Plan(ctx, request, allowed)
	p.meter.count(got)
	return got, err
}

type meteredSummarizer struct {
	meter *Meter
	next  llm.Summarizer
}

func (s meteredSummarizer) Summarize(ctx context.Context, request string, typed []byte) (llm.Completion, error) {
	got, err := s.next.Summarize(ctx, request, typed)
	s.meter.count(got)
	return got, err
}

// maxTokens is the largest count that is believed of one completion: an endpoint can write any number.
const maxTokens = 100_000_000

func (m *Meter) count(got llm.Completion) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range got.Exchanges {
		m.sum.Completions++
		if prompt, completion, ok := usage(x.Received); ok {
			m.sum.Counted++
			m.sum.Prompt += prompt
			m.sum.Completion += completion
		}
	}
}

// usage reads the cost that a response reports; false without two plausible numbers.
func usage(response []byte) (prompt, completion int64, ok bool) {
	var doc struct {
		Usage *struct {
			Prompt     *int64 `json:"prompt_tokens"`
			Completion *int64 `json:"completion_tokens"`
		} `json:"usage"`
	}
	if canonical.Check(response, 0) != nil || json.Unmarshal(response, &doc) != nil || doc.Usage == nil {
		return 0, 0, false
	}
	u := doc.Usage
	if u.Prompt == nil || u.Completion == nil || *u.Prompt < 0 || *u.Prompt > maxTokens || *u.Completion < 0 || *u.Completion > maxTokens {
		return 0, 0, false
	}
	return *u.Prompt, *u.Completion, true
}
