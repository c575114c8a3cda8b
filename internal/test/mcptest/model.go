package mcptest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/test/clitest"
)

// A Model is an OpenAI-compatible endpoint that says what its test wants, and keeps every request.
type Model struct {
	*httptest.Server
	Say  Saying
	gone chan struct{} // closed when the test has ended

	mu  sync.Mutex
	all []Prompt
}

// A Prompt is one request for a chat completion.
type Prompt struct {
	Kind         string // plan or summary
	System, User string
	Format       bool // the request has a response_format
	Body         string
	Header       http.Header
}

// A Saying answers one request.
type Saying func(m *Model, w http.ResponseWriter, r *http.Request, p Prompt)

// NewModel starts a model.
func NewModel(t testing.TB, say Saying) *Model {
	t.Helper()
	m := &Model{Say: say, gone: make(chan struct{})}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Server.Close)
	t.Cleanup(sync.OnceFunc(func() { close(m.gone) }))
	return m
}

func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" {
		http.NotFound(w, r)
		return
	}
	p, err := readPrompt(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	p.Header = r.Header.Clone()

	m.mu.Lock()
	m.all = append(m.all, p)
	m.mu.Unlock()
	m.Say(m, w, r, p)
}

// readPrompt reads a request as strictly as an endpoint may.
func readPrompt(body []byte) (Prompt, error) {
	var doc struct {
		Messages       []struct{ Role, Content string } `json:"messages"`
		ResponseFormat struct {
			JSONSchema struct {
				Name string `json:"name"`
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	if err := json.Unmarshal(body, &doc, json.MatchCaseInsensitiveNames(true)); err != nil {
		return Prompt{}, err
	}
	if len(doc.Messages) != 2 || doc.Messages[0].Role != "system" || doc.Messages[1].Role != "user" {
		return Prompt{}, fmt.Errorf("the messages are %v, want one of system and one of user", doc.Messages)
	}

	p := Prompt{Kind: "plan", System: doc.Messages[0].Content, User: doc.Messages[1].Content, Body: string(body)}
	if strings.Contains(p.System, "\n<<<BEGIN RESULT>>>\n") {
		p.Kind = "summary"
	}
	if name := doc.ResponseFormat.JSONSchema.Name; name != "" {
		p.Format = true
		if got := strings.TrimPrefix(name, "pgfsm_"); got != p.Kind {
			return Prompt{}, fmt.Errorf("the schema is %q, and the prompt that of a %s", name, p.Kind)
		}
	}
	return p, nil
}

// Prompts returns the requests that have arrived.
func (m *Model) Prompts() []Prompt {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.all)
}

// Hang answers nothing until the client or the test has gone.
func (m *Model) Hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-m.gone:
	}
}

// Spoken returns a chat completion that says a text.
func Spoken(content string) string {
	return fmt.Sprintf(`{"id":"c-1","object":"chat.completion","created":1767225600,"model":"scripted-1","choices":[`+
		`{"index":0,"finish_reason":"stop","logprobs":null,"message":{"role":"assistant","refusal":null,"content":%s}}],`+
		`"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, clitest.Quote(content))
}

// SayJSON answers with a JSON document.
func SayJSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// SaysBoth answers with a plan and, when asked for one, a summary.
func SaysBoth(plan, summary string) Saying {
	return func(_ *Model, w http.ResponseWriter, _ *http.Request, p Prompt) {
		content := plan
		if p.Kind == "summary" {
			content = summary
		}
		SayJSON(w, http.StatusOK, Spoken(content))
	}
}

// PlanFor returns the text of a plan to call a tool.
func PlanFor(server, tool, args string) string {
	return fmt.Sprintf(`{"type":"call_tool","server":%s,"tool":%s,"args":%s}`, clitest.Quote(server), clitest.Quote(tool), args)
}
