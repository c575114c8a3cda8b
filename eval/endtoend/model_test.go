package endtoend

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgfsm/llm"
)

func newModel(t *testing.T, base string) *llm.Model {
	t.Helper()
	m, err := llm.NewModel(llm.Config{BaseURL: base, Model: scriptedModel, Timeout: 30 * time.Second, MaxTokens: 100})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestScriptSaysItsWords: the scripted model answers what package llm asks, over HTTP, byte for byte and whatever it is.
func TestScriptSaysItsWords(t *testing.T) {
	c := &Case{Plan: "Sure \"quoted\" \u2028 \ufeff{\n", Summary: `{"items":[]}`}
	url, stop, err := listen(c)
	if err != nil {
		t.Fatal(err)
	}
	m := newModel(t, url)
	got, err := m.Plan(t.Context(), "anything", nil)
	if err != nil || string(got.Content) != c.Plan {
		t.Errorf("Plan() = %q, %v, want %q", got.Content, err, c.Plan)
	}
	got, err = m.Summarize(t.Context(), "anything", []byte(`{}`))
	if err != nil || string(got.Content) != c.Summary {
		t.Errorf("Summarize() = %q, %v, want %q", got.Content, err, c.Summary)
	}
	for name, body := range map[string]string{ // in any order
		"no-schema": `{}`, "another-schema": `{"response_format":{"json_schema":{"name":"other"}}}`, "no-json": `{`, "nothing": ``,
	} {
		res, err := http.Post(url+"/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusNotImplemented {
			t.Errorf("%s: status %d, want %d", name, res.StatusCode, http.StatusNotImplemented)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := m.Plan(t.Context(), "anything", nil); err == nil {
		t.Error("the closed endpoint answers")
	}
}

func TestUsage(t *testing.T) {
	tests := []struct {
		name, response string
		want           []int64 // prompt and completion; nil: not reported
	}{
		{"said", `{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15,"details":{"cached":1}}}`, []int64{12, 3}},
		{"zero", `{"usage":{"prompt_tokens":0,"completion_tokens":0}}`, []int64{0, 0}},
		{"at-the-limit", `{"usage":{"prompt_tokens":100000000,"completion_tokens":1}}`, []int64{maxTokens, 1}},
		{"one-past", `{"usage":{"prompt_tokens":100000001,"completion_tokens":1}}`, nil},
		{"negative", `{"usage":{"prompt_tokens":-1,"completion_tokens":1}}`, nil},
		{"half", `{"usage":{"prompt_tokens":1}}`, nil},
		{"text", `{"usage":{"prompt_tokens":"1","completion_tokens":1}}`, nil},
		{"fraction", `{"usage":{"prompt_tokens":1.5,"completion_tokens":1}}`, nil},
		{"huge", `{"usage":{"prompt_tokens":1e400,"completion_tokens":1}}`, nil},
		{"null", `{"usage":null}`, nil},
		{"twice", `{"usage":{"prompt_tokens":1,"completion_tokens":1},"usage":{"prompt_tokens":2,"completion_tokens":2}}`, nil},
		{"none", `{"choices":[]}`, nil},
		{"no-json", `<html>`, nil},
		{"nothing", ``, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var tokens Tokens
			tokens.count(llm.Completion{Exchanges: []llm.Exchange{{Received: []byte(tt.response)}}})
			want := Tokens{Completions: 1}
			if tt.want != nil {
				want = Tokens{1, 1, tt.want[0], tt.want[1]}
			}
			if d := cmp.Diff(want, tokens); d != "" {
				t.Errorf("tokens (-want +got):\n%s", d)
			}
		})
	}
}

func TestTokensSayWhatTheyAreOf(t *testing.T) {
	for _, tt := range []struct {
		name string
		sum  Tokens
		want string
	}{
		{"all", Tokens{2, 2, 10, 4}, "10"}, {"some", Tokens{3, 2, 10, 4}, "10 (of 2 of 3 completions)"}, {"none", Tokens{3, 0, 0, 0}, "not reported"},
		{"nothing-asked", Tokens{}, "not reported"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.sum.text(tt.sum.Prompt); got != tt.want {
				t.Errorf("text() = %q, want %q", got, tt.want)
			}
		})
	}
}
