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
	return m.complete(ctx, p)
}

// Summarize asks the model for a summary.
func (m *Model) Summarize(ctx context.Context, request string, typed []byte) (Completion, error) {
	p, err := summaryPrompt(request, typed)
	if err != nil {
		return Completion{}, err
	}
	return m.complete(ctx, p)
}

// complete asks once, and once more without response_format if the endpoint may have refused
// because of it.
func (m *Model) complete(ctx context.Context, p prompt) (Completion, error) {
	var got Completion
	if err := m.stopped(ctx, ctx); err != nil {
		return got, err
	}

	limited, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	x, err := m.exchange(limited, &got, p, true)
	if err == nil && (x.Status == http.StatusBadRequest || x.Status == http.StatusUnprocessableEntity) {
		x, err = m.exchange(limited, &got, p, false)
	}

	if err != nil {
		if stopped := m.stopped(ctx, limited); stopped != nil {
			return got, stopped
		}
		return got, m.fault(x, err.Error())
	}
	if x.Status != http.StatusOK {
		return got, m.fault(x, refusalWords(x.Received))
	}

	content, refusal, err := policy.ReadCompletion(x.Received)
	if err != nil {
		return got, m.fault(x, m.retold(x.Received, err))
	}

	got.Content, got.Refusal = content, refusal
	return got, nil
}

// exchange sends the prompt and adds the exchange to got, if the request was made. The error says
// why the response is incomplete.
func (m *Model) exchange(ctx context.Context, got *Completion, p prompt, format bool) (Exchange, error) {
	asked := map[string]any{
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
		asked["response_format"] = map[string]any{
			"type":        "json_schema",
			"json_schema": map[string]any{"name": p.format, "schema": jsontext.Value(p.schema)},
		}
	}

	body, err := canonical.Marshal(asked)
	if err != nil {
		return Exchange{}, err
	}
	req, err := m.request(ctx, body)
	if err != nil {
		return Exchange{}, err
	}

	x := Exchange{Sent: body}
	resp, err := m.transport.RoundTrip(req)
	if err == nil {
		defer resp.Body.Close()
		err = x.take(resp)
	}

	got.Exchanges = append(got.Exchanges, x)
	return x, err
}
