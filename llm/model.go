package llm

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/secret"
	"pgfsm/internal/web/loopback"
	"pgfsm/policy"
)

// A Model is a [Planner] and a [Summarizer] that asks an OpenAI-compatible endpoint; see the
// package comment. Any number of runs may share it.
type Model struct {
	name      string
	key       string // empty: none is sent
	secrets   *secret.Masker
	where     string // the URL of the POST requests
	timeout   time.Duration
	maxTokens int
	transport http.RoundTripper
}

// NewModel makes a model of what the configuration has checked; it does not connect. An API key
// needs https or a loopback address. Errors do not quote the URL or the key, because either may
// hold a secret. No error of the model has one of the secrets, which include the key.
func NewModel(c *policy.LLM, key string, secrets *secret.Masker) (*Model, error) {
	base, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || base.Hostname() == "":
		return nil, errors.New("the base URL is no URL with a host")
	case key != "" && base.Scheme != "https" && !loopback.Host(base.Hostname()):
		return nil, errors.New("the API key would travel in clear text: use https, or a loopback address")
	}
	return &Model{
		name:      c.Model,
		key:       key,
		secrets:   secrets,
		where:     strings.TrimRight(c.BaseURL, "/") + "/chat/completions",
		timeout:   time.Duration(c.Timeout) * time.Millisecond,
		maxTokens: c.MaxTokens,
		transport: newTransport(base, key != ""),
	}, nil
}

// Plan asks the model for a plan.
func (m *Model) Plan(ctx context.Context, request string, allowed []Tool) (Completion, error) {
	p, err := planPrompt(request, allowed)
	if err != nil {
		return Completion{}, err
	}
	return m.requestCompletion(ctx, p)
}

// Summarize asks the model for a summary.
func (m *Model) Summarize(ctx context.Context, request string, typed []byte) (Completion, error) {
	p, err := summaryPrompt(request, typed)
	if err != nil {
		return Completion{}, err
	}
	return m.requestCompletion(ctx, p)
}

// requestCompletion asks once, and once more without response_format if the endpoint may have
// refused because of it.
func (m *Model) requestCompletion(ctx context.Context, p prompt) (Completion, error) {
	var completion Completion
	if err := m.timeError(ctx, ctx); err != nil {
		return completion, err
	}

	// Both requests share the model's time.
	limited, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	exchange, err := m.sendPrompt(limited, &completion, p, true)
	if err == nil && (exchange.Status == http.StatusBadRequest || exchange.Status == http.StatusUnprocessableEntity) {
		exchange, err = m.sendPrompt(limited, &completion, p, false)
	}

	if err != nil {
		if stopped := m.timeError(ctx, limited); stopped != nil {
			return completion, stopped
		}
		return completion, m.newFault(exchange, err.Error())
	}
	if exchange.Status != http.StatusOK {
		return completion, m.newFault(exchange, refusalWords(exchange.Received))
	}

	content, refusal, err := policy.ReadCompletion(exchange.Received)
	if err != nil {
		return completion, m.newFault(exchange, m.maskedError(exchange.Received, err))
	}

	completion.Content, completion.Refusal = content, refusal
	return completion, nil
}

// sendPrompt sends the prompt and adds the exchange to completion, if the request was made. The error says
// why the response is incomplete.
func (m *Model) sendPrompt(ctx context.Context, completion *Completion, p prompt, format bool) (Exchange, error) {
	document := map[string]any{
		"model":       m.name,
		"max_tokens":  m.maxTokens,
		"n":           1,
		"temperature": 0,
		"messages": []any{
			map[string]string{"role": "system", "content": p.system},
			map[string]string{"role": "user", "content": p.user},
		},
	}

	if format {
		document["response_format"] = map[string]any{
			"type":        "json_schema",
			"json_schema": map[string]any{"name": p.format, "schema": jsontext.Value(p.schema)},
		}
	}

	// The recorded body is the one that is sent, byte for byte.
	body, err := canonical.Marshal(document)
	if err != nil {
		return Exchange{}, err
	}
	req, err := m.newRequest(ctx, body)
	if err != nil {
		return Exchange{}, err
	}

	x := Exchange{Sent: body}
	defer func() { completion.Exchanges = append(completion.Exchanges, x) }()
	resp, err := m.transport.RoundTrip(req)
	if err != nil {
		return x, err
	}
	defer resp.Body.Close()
	err = x.readResponse(resp)
	return x, err
}
