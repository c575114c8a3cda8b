package llm

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/secret"
	"pgfsm/internal/web/loopback"
	"pgfsm/policy"
)

// Config says which model to ask, and how long for.
type Config struct {
	BaseURL   string        // for example https://api.openai.com/v1; "/chat/completions" is appended
	Model     string        // the endpoint's name of the model
	APIKey    string        // sent as a bearer token; none is sent if it is empty
	Timeout   time.Duration // for one completion, the repetition included
	MaxTokens int           // the longest completion

	Secrets *secret.Masker // no error may contain them; includes the APIKey. Nil means only the APIKey
}

// A Model is a [Planner] and a [Summarizer] that asks an OpenAI-compatible endpoint; see the package comment. Any number of runs may share it.
type Model struct {
	name      string
	key       string // empty: none is sent
	secrets   *secret.Masker
	where     string // the URL of the POST requests
	timeout   time.Duration
	maxTokens int
	transport http.RoundTripper
}

// NewModel makes a model of what the configuration has checked; it does not connect. An API key needs https or a loopback address. Errors
// do not quote the URL or the key, because either may hold a secret.
func NewModel(c Config) (*Model, error) {
	base, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || base.Hostname() == "":
		return nil, errors.New("the base URL is no URL with a host")
	case c.APIKey != "" && base.Scheme != "https" && !loopback.Host(base.Hostname()):
		return nil, errors.New("the API key would travel in clear text: use https, or a loopback address")
	}
	if c.Secrets == nil {
		c.Secrets = secret.New([]string{c.APIKey})
	}
	return &Model{
		name: c.Model, key: c.APIKey, secrets: c.Secrets,
		where:   strings.TrimRight(c.BaseURL, "/") + "/chat/completions",
		timeout: c.Timeout, maxTokens: c.MaxTokens,
		transport: newTransport(base, c.APIKey != ""),
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

// complete asks once, and once more without response_format if the endpoint may have refused because of it.
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

// A chatRequest is the body of a request for a chat completion.
type chatRequest struct {
	Messages       []chatMessage   `json:"messages"`
	Model          string          `json:"model"`
	MaxTokens      int             `json:"max_tokens"`
	N              int             `json:"n"`
	Temperature    int             `json:"temperature"`
	ResponseFormat *responseFormat `json:"response_format,omitzero"`
}

type chatMessage struct {
	Content string `json:"content"`
	Role    string `json:"role"`
}

type responseFormat struct {
	JSONSchema namedSchema `json:"json_schema"`
	Type       string      `json:"type"`
}

type namedSchema struct {
	Name   string         `json:"name"`
	Schema jsontext.Value `json:"schema"`
}

// exchange sends the prompt and adds the exchange to got, if the request was made. The error says why the response is incomplete.
func (m *Model) exchange(ctx context.Context, got *Completion, p prompt, format bool) (Exchange, error) {
	asked := chatRequest{
		Messages:  []chatMessage{{p.system, "system"}, {p.user, "user"}},
		Model:     m.name,
		MaxTokens: m.maxTokens,
		N:         1,
	}
	if format {
		asked.ResponseFormat = &responseFormat{namedSchema{p.format, jsontext.Value(p.schema)}, "json_schema"}
	}
	body, err := json.Marshal(&asked)
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
