package policy_test

import (
	"strings"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// completion is a chat completion whose message has these members.
func completion(members string) string {
	return `{"id":"c","object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{` + members + `}}]}`
}

func content(text string) string {
	return completion(`"content":` + string(canonical.AppendText(nil, text)))
}

func deepCompletion(depth int) string {
	return strings.Replace(content("x"), `"id"`, `"deep":`+strings.Repeat("[", depth-1)+strings.Repeat("]", depth-1)+`,"id"`, 1)
}

func TestReadCompletion(t *testing.T) {
	for _, tt := range []struct {
		name, doc        string
		content, refusal string
		want             string // in the error
	}{
		{"content", content("x"), "x", "", ""},
		{"escapes-are-undone", completion(`"content":"\u003c\n\"\ud83d\ude00"`), "<\n\"😀", "", ""},
		{"content-is-not-judged", content("```json\n{}\n```"), "```json\n{}\n```", "", ""},
		{"null-content", completion(`"content":null`), "", "", ""},
		{"absent-content", completion(`"role":"assistant"`), "", "", ""},
		{"refusal", completion(`"content":null,"refusal":"I will not."`), "", "I will not.", ""},
		{"content-and-refusal", completion(`"content":"x","refusal":"no"`), "x", "no", ""},
		{"tool-calls-are-no-content", completion(`"tool_calls":[{"function":{"name":"x","arguments":"{}"}}]`), "", "", ""},
		{"cut-off", `{"choices":[{"finish_reason":"length","message":{"content":"{\"type\":"}}]}`, `{"type":`, "", ""},
		{"content-in-another-case", completion(`"Content":"x"`), "", "", ""},
		{"depth-at-the-limit", deepCompletion(policy.MaxCompletionDepth), "x", "", ""},
		{"depth-one-past-the-limit", deepCompletion(policy.MaxCompletionDepth + 1), "", "", "too deep"},
		{"empty", "", "", "", "ends too early"},
		{"list", "[]", "", "", "the response has another type"},
		{"two-documents", content("x") + content("x"), "", "", "behind the JSON value"},
		{"duplicate-content-escaped", completion(`"content":"x","c\u006fntent":"y"`), "", "", "not strict JSON"},
		{"null-choices", `{"choices":null}`, "", "", "no choice"},
		{"choices-not-a-list", `{"choices":{"0":{}}}`, "", "", "/choices has another type"},
		{"choice-not-an-object", `{"choices":["x"]}`, "", "", "/choices/0 has another type"},
		{"choice-null", `{"choices":[null]}`, "", "", "/choices/0/message is not an object"},
		{"message-absent", `{"choices":[{"text":"x"}]}`, "", "", "/choices/0/message is not an object"},
		{"content-number", completion(`"content":1`), "", "", "/choices/0/message/content has another type"},
		{"refusal-true", completion(`"content":"x","refusal":true`), "", "", "/choices/0/message/refusal has another type"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, refusal, err := policy.ReadCompletion([]byte(tt.doc))
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("ReadCompletion(%s) = %q, %q, %v, want an error with %q", tt.doc, got, refusal, err, tt.want)
				}
				return
			}
			if err != nil || string(got) != tt.content || refusal != tt.refusal {
				t.Errorf("ReadCompletion(%s) = %q, %q, %v, want %q, %q", tt.doc, got, refusal, err, tt.content, tt.refusal)
			}
		})
	}
}
