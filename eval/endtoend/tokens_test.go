package endtoend

import (
	"net/http"
	"testing"

	"pgfsm/llm"
)

// TestTokens: the counts are those of the endpoint, and a response without two whole numbers is not counted.
func TestTokens(t *testing.T) {
	for _, tt := range []struct {
		name, response string
		want           Tokens
	}{
		{"reported", `{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15}}`, Tokens{1, 1, 12, 3}},
		{"zero", `{"usage":{"prompt_tokens":0,"completion_tokens":0}}`, Tokens{1, 1, 0, 0}},
		{"one-count", `{"usage":{"prompt_tokens":12}}`, Tokens{Completions: 1}},
		{"negative", `{"usage":{"prompt_tokens":-1,"completion_tokens":1}}`, Tokens{Completions: 1}},
		{"fraction", `{"usage":{"prompt_tokens":1.5,"completion_tokens":1}}`, Tokens{Completions: 1}},
		{"huge", `{"usage":{"prompt_tokens":1e400,"completion_tokens":1}}`, Tokens{Completions: 1}},
		{"null", `{"usage":null}`, Tokens{Completions: 1}},
		{"no-json", `<html>`, Tokens{Completions: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var m tokenMeter
			m.countTokens(llm.Completion{Exchanges: []llm.Exchange{
				{Status: http.StatusBadRequest, Received: []byte(`{"error":{}}`)}, // costs nothing
				{Status: http.StatusOK, Received: []byte(tt.response)},
			}})
			if m.tokens != tt.want {
				t.Errorf("tokens are %+v, want %+v", m.tokens, tt.want)
			}
		})
	}
}
