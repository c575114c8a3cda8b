package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// An oracle is an OpenAI-compatible endpoint under the control of a test: it says what the test wants, well-formed or
// not, and keeps every request that came.
type oracle struct {
	*httptest.Server
	say  saying
	gone chan struct{} // closed at the end of the test: what hangs, hangs until then

	mu  sync.Mutex
	all []asked
}

// asked is one request for a chat completion, as it came.
type asked struct {
	kind         string // plan or summary
	system, user string
	format       bool // it had a response_format
	body         string
	header       http.Header
}

// A saying answers one request.
type saying func(o *oracle, w http.ResponseWriter, r *http.Request, q asked)

func newOracle(t *testing.T, say saying) *oracle {
	t.Helper()
	o := &oracle{say: say, gone: make(chan struct{})}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.Server.Close)
	t.Cleanup(sync.OnceFunc(func() { close(o.gone) }))
	return o
}

func (o *oracle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" {
		http.NotFound(w, r)
		return
	}
	q, err := readAsked(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	q.header = r.Header.Clone()
	o.mu.Lock()
	o.all = append(o.all, q)
	o.mu.Unlock()
	o.say(o, w, r, q)
}

// readAsked reads a request as strictly as a plan is read: an endpoint may do so too.
func readAsked(body []byte) (asked, error) {
	var doc struct {
		Messages       []struct{ Role, Content string } `json:"messages"`
		ResponseFormat struct {
			JSONSchema struct {
				Name string `json:"name"`
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	if err := canonical.Check(body, 0); err != nil {
		return asked{}, err
	}
	if err := json.Unmarshal(body, &doc, json.MatchCaseInsensitiveNames(true)); err != nil {
		return asked{}, err
	}
	if len(doc.Messages) != 2 || doc.Messages[0].Role != "system" || doc.Messages[1].Role != "user" {
		return asked{}, fmt.Errorf("the messages are %v, want one of system and one of user", doc.Messages)
	}
	q := asked{system: doc.Messages[0].Content, user: doc.Messages[1].Content, body: string(body), kind: "plan"}
	if strings.Contains(q.system, "\n<<<BEGIN RESULT>>>\n") {
		q.kind = "summary"
	}
	if name := doc.ResponseFormat.JSONSchema.Name; name != "" {
		q.format = true
		if got := strings.TrimPrefix(name, "pgfsm_"); got != q.kind {
			return asked{}, fmt.Errorf("the schema is %q, and the prompt that of a %s", name, q.kind)
		}
	}
	return q, nil
}

// requests returns what has come so far.
func (o *oracle) requests() []asked {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]asked{}, o.all...)
}

// hang answers nothing until the client, or the test, has gone.
func (o *oracle) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-o.gone:
	}
}

// quoted is a text as a JSON string.
func quoted(text string) string {
	b, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// chat is a whole chat completion whose only choice has this message.
func chat(message string) string {
	return fmt.Sprintf(`{"id":"c-1","object":"chat.completion","created":1767225600,"model":"scripted-1","choices":[`+
		`{"index":0,"finish_reason":"stop","logprobs":null,"message":%s}],`+
		`"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, message)
}

// spoken is a chat completion that says a text.
func spoken(content string) string {
	return chat(`{"role":"assistant","refusal":null,"content":` + quoted(content) + `}`)
}

func sayJSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// saysBoth answers with a plan and, when asked for one, a summary.
func saysBoth(plan, summary string) saying {
	return func(_ *oracle, w http.ResponseWriter, _ *http.Request, q asked) {
		content := plan
		if q.kind == "summary" {
			content = summary
		}
		sayJSON(w, http.StatusOK, spoken(content))
	}
}

// planFor is the text of a plan to call a tool.
func planFor(server, tool, args string) string {
	return fmt.Sprintf(`{"type":"call_tool","server":%s,"tool":%s,"args":%s}`, quoted(server), quoted(tool), args)
}

// replays wants every trace of a folder to replay alike, and this many of them.
func replays(t *testing.T, traces string, n int) {
	t.Helper()
	r := command(t.Context(), nil, "replay", traces)
	r.want(t, exitYes)
	if want := fmt.Sprintf("%d replayed alike, 0 not", n); !strings.Contains(r.stdout, want) {
		t.Errorf("replay says %q, want %q", r.stdout, want)
	}
}

// textOf reads a file whole.
func textOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tracesOf returns the finished traces of a folder, and fails for anything that was left behind unfinished.
func tracesOf(t *testing.T, dir string) []string {
	t.Helper()
	if partial, err := filepath.Glob(filepath.Join(dir, "*.partial")); err != nil || len(partial) > 0 {
		t.Errorf("left behind: %q, %v", partial, err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "trace_*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// holds reports whether a text holds a secret: as it is, or in JSON strings, however deep they stand in others.
func holds(text, secret string) bool { return holdsBelow(text, secret, 5) }

func holdsBelow(text, secret string, depth int) bool {
	if strings.Contains(text, secret) {
		return true
	}
	if depth == 0 || !strings.Contains(text, `\`) {
		return false
	}
	for from := 0; ; {
		open := strings.IndexByte(text[from:], '"')
		if open < 0 {
			return false
		}
		from += open
		end := from + 1
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(text) {
			return false
		}
		inner, _ := jsontext.AppendUnquote(nil, text[from:end+1])
		if holdsBelow(string(inner), secret, depth-1) {
			return true
		}
		from = end + 1
	}
}

// TestHoldsCanSayYes shows that the search for secrets finds them.
func TestHoldsCanSayYes(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       bool
	}{
		{"plain", `a secret-1 b`, true},
		{"not-there", `a secret-2 "b\n" c`, false},
		{"escaped", `{"a":"\u0073ecret-1"}`, true},
		{"escaped-in-a-string-in-a-string", `{"a":"{\"b\":\"\\u0073ecret-1\"}"}`, true},
		{"behind-a-quote-that-is-escaped", `["\"","\u0073ecret-1"]`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := holds(tt.text, "secret-1"); got != tt.want {
				t.Errorf("holds(%s) = %t, want %t", tt.text, got, tt.want)
			}
		})
	}
}
