package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
	"pgfsm/internal/secret"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
)

// TestMain sets a proxy that leads nowhere: the standard library reads these once.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
		os.Setenv(name, "http://192.0.2.1:9")
	}
	os.Exit(m.Run())
}

const testKey = "sk-test/0123456789"

// longEnough is a time that no test waits for.
const longEnough = time.Minute

// An endpoint keeps the requests that reach it.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	last   *http.Request
}

func (e *endpoint) requests() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.bodies
}

// serve starts an endpoint. Its handlers get the number of the request, from 1.
func serve(t testing.TB, handle func(w http.ResponseWriter, r *http.Request, n int)) *endpoint {
	t.Helper()
	e := new(endpoint)
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		e.mu.Lock()
		e.bodies, e.last = append(e.bodies, string(body)), r
		n := len(e.bodies)
		e.mu.Unlock()
		handle(w, r, n)
	}))
	t.Cleanup(e.Close)
	return e
}

// model is a model that asks the endpoint.
func (e *endpoint) model(t testing.TB, key string, secrets ...string) *Model {
	t.Helper()
	c := &policy.LLM{BaseURL: e.URL + "/v1/", Model: "test-model", Timeout: longEnough.Milliseconds(), MaxTokens: 512}
	m, err := NewModel(c, key, secret.New(append(secrets, key)))
	check.NoError(t, err)
	return m
}

// completion is a response whose message has these members.
func completion(members string) string {
	return `{"id":"c","object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{` + members + `}}]}`
}

func content(text string) string {
	return completion(`"role":"assistant","content":` + string(canonical.AppendText(nil, text)))
}

// always answers every request in the same way.
func always(status int, body string) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

var testTools = []Tool{
	{
		Server: "kb", Name: "fetch", Title: "Fetch a policy", Description: "Returns one policy by its id.",
		InputSchema: []byte(`{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}}`),
	},
	{Server: "kb", Name: "list", InputSchema: []byte(`{"type": "object"}`)},
}

const testPlan = `{"type":"call_tool","server":"kb","tool":"fetch","args":{"id":"policy-002"}}`

func TestModel(t *testing.T) {
	ask := []func(*Model) (Completion, error){
		func(m *Model) (Completion, error) { return m.Plan(t.Context(), "What does policy-002 say?", testTools) },
		func(m *Model) (Completion, error) {
			return m.Summarize(t.Context(), "Summarize it", []byte(`{"a":"b"}`))
		},
	}
	for i, name := range []string{"plan", "summary"} {
		t.Run(name, func(t *testing.T) {
			body := content(testPlan)
			e := serve(t, always(http.StatusOK, body))
			got, err := ask[i](e.model(t, testKey))
			check.NoError(t, err)
			sent := e.requests()
			want := Completion{Content: []byte(testPlan), Exchanges: []Exchange{{[]byte(sent[0]), []byte(body), 200}}}
			if diff := cmp.Diff(want, got); diff != "" || len(sent) != 1 {
				t.Errorf("%d requests, completion (-want +got):\n%s", len(sent), diff)
			}
			if e.last.URL.Path != "/v1/chat/completions" || e.last.Method != http.MethodPost {
				t.Errorf("the request was %s %s", e.last.Method, e.last.URL)
			}
			goldenPrompt(t, name+".request.json", sent[0])
		})
	}
}

func TestModel_Headers(t *testing.T) {
	for _, tt := range []struct{ name, key string }{{"with-a-key", testKey}, {"without-a-key", ""}} {
		t.Run(tt.name, func(t *testing.T) {
			e := serve(t, always(http.StatusOK, content("x")))
			m := e.model(t, tt.key)
			if got, err := m.Plan(t.Context(), "x", nil); err != nil || string(got.Content) != "x" {
				t.Errorf("Plan = %s, %v, want x", got.Content, err)
			}
			want := http.Header{
				"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "Connection": {"close"},
				"Content-Length": {fmt.Sprint(len(e.requests()[0]))}, "Content-Type": {"application/json"},
				"User-Agent": {"pgfsm"},
			}
			if tt.key != "" {
				want["Authorization"] = []string{"Bearer " + tt.key}
			}
			if diff := cmp.Diff(want, e.last.Header); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestModel_ResponseFormatFallback(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second int
		requests      int
		status        int // of the error, 0 for none
	}{
		{"bad-request", 400, 200, 2, 0},
		{"unprocessable", 422, 200, 2, 0},
		{"twice-bad", 400, 400, 2, 400},
		{"then-broken", 422, 500, 2, 500},
		{"unauthorized", 401, 200, 1, 401},
		{"request-timeout", 408, 200, 1, 408},
		{"too-many-requests", 429, 200, 1, 429},
		{"broken", 500, 200, 1, 500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
				w.Header().Set("Retry-After", "0")
				w.Header().Set("X-Should-Retry", "true")
				if n == 1 {
					always(tt.first, `{"error":{"message":"first"}}`)(w, r, n)
				} else {
					always(tt.second, content("second"))(w, r, n)
				}
			})
			got, err := e.model(t, testKey).Plan(t.Context(), "x", testTools)
			var fault *EndpointError
			if errors.As(err, &fault) != (tt.status != 0) || fault != nil && fault.Status != tt.status {
				t.Errorf("Plan = %v, want status %d", err, tt.status)
			}
			sent := e.requests()
			if len(sent) != tt.requests || len(got.Exchanges) != tt.requests {
				t.Fatalf("%d requests, %d exchanges, want %d", len(sent), len(got.Exchanges), tt.requests)
			}
			for i, x := range got.Exchanges {
				if string(x.Sent) != sent[i] || x.Status != []int{tt.first, tt.second}[i] || len(x.Received) == 0 {
					t.Errorf("exchange %d is %d %q for %q", i, x.Status, x.Received, x.Sent)
				}
				if has := strings.Contains(sent[i], `"response_format"`); has != (i == 0) {
					t.Errorf("request %d has response_format: %t", i, has)
				}
			}
			if tt.status == 0 && string(got.Content) != "second" {
				t.Errorf("content = %q, want that of the second response", got.Content)
			}
		})
	}
}

// TestNewModel: the key goes over https or to this machine, and no error quotes the configuration.
func TestNewModel(t *testing.T) {
	for _, tt := range []struct{ name, base, key, want string }{
		{"https", "https://models.test/v1", testKey, ""},
		{"key-over-http-to-loopback", "http://127.0.0.1:8080/v1", testKey, ""},
		{"key-over-http-to-localhost", "http://localhost:8080/v1", testKey, ""},
		{"no-key-over-http", "http://models.test/v1", "", ""},
		{"key-over-http", "http://models.test/v1?secret", testKey, "clear text"},
		{"key-over-http-to-a-name-like-localhost", "http://localhost.models.test/v1", testKey, "clear text"},
		{"not-a-url", "https://models.test:secret/%", "", "no URL with a host"},
		{"no-host", "https:///secret", "", "no URL with a host"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewModel(&policy.LLM{BaseURL: tt.base}, tt.key, nil)
			got := fmt.Sprint(err)
			if (err == nil) != (tt.want == "") || !strings.Contains(got, tt.want) || strings.Contains(got, "secret") || strings.Contains(got, testKey) {
				t.Errorf("NewModel = %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestDoneContextSendsNothing(t *testing.T) {
	e := serve(t, always(http.StatusOK, content("x")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := e.model(t, testKey).Plan(ctx, "x", nil)
	if !errors.Is(err, context.Canceled) || got.Exchanges != nil || len(e.requests()) != 0 {
		t.Errorf("Plan = %+v, %v, %d requests, want none", got, err, len(e.requests()))
	}
}
