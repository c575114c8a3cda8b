package eval

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFirstCall(t *testing.T) {
	tests := []struct {
		name, said string
		want       []string // server, tool, args; nil: no call
	}{
		{"a-plan", `{"type":"call_tool","server":"s","tool":"t","args":{"a":1}}`, []string{"s", "t", `{"a":1}`}},
		{"in-a-fence", "Sure:\n```json\n{\"server\":\"s\",\"tool\":\"t\",\"args\":{}}\n```", []string{"s", "t", "{}"}},
		{"text-behind", `{"server":"s","tool":"t"} there you go {"server":"x","tool":"y"}`, []string{"s", "t", "{}"}},
		{"the-last-of-two-members", `{"server":"s","tool":"read","tool":"erase"}`, []string{"s", "erase", "{}"}},
		{"members-in-another-case", `{"Server":"s","TOOL":"t","aRgS":{"a":1}}`, []string{"s", "t", `{"a":1}`}},
		{"in-a-list", `[{"server":"s","tool":"t"},{"server":"s","tool":"u"}]`, []string{"s", "t", "{}"}},
		{"braces-before", `I {think} so: {"server":"s","tool":"t"}`, []string{"s", "t", "{}"}},
		{"arguments-null", `{"server":"s","tool":"t","args":null}`, []string{"s", "t", "{}"}},
		{"arguments-that-are-text", `{"server":"s","tool":"t","args":"{}"}`, []string{"s", "t", `"{}"`}},
		{"no-server", `{"tool":"t"}`, []string{"", "t", "{}"}},
		{"words", "I cannot do that.", nil},
		{"a-question", `{"type":"final_answer","answer":"Which?","needs_more_info":true}`, nil},
		{"wrapped", `{"plan":{"server":"s","tool":"t"}}`, nil},
		{"cut-off", `{"server":"s","tool":"t","args":{`, nil},
		{"tool-is-no-text", `{"server":"s","tool":7}`, nil},
		{"nothing", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			if p, ok := FirstCall([]byte(tt.said)); ok {
				got = []string{p.Server, p.Tool, string(p.Args)}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("FirstCall(%q) (-want +got):\n%s", tt.said, d)
			}
		})
	}
}
