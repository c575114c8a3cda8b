package origin_test

import (
	"fmt"
	"strings"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/policy/origin"
)

// A large is a search for many values in a large session.
type large struct {
	name   string
	prompt string   // repeated to 64 KiB in each of 64 prompts
	value  []string // of a trusted result
	sent   string   // repeated to 64 KiB in each of 64 calls
	to     []string
	used   int // calls that had the first value from the result
}

// larges cost the most in the ways in which values are found. The first are within the bound.
func larges() []large {
	list := func(n int, form string) (texts []string) {
		for i := range n {
			texts = append(texts, strings.ReplaceAll(form, "%", fmt.Sprint(i)))
		}
		return texts
	}
	few, many := list(10, "user%@example.com"), list(200, "user%@example.com")
	return []large{
		{name: "few-values", value: list(40_000, "user%@example.com"), to: few},
		{name: "many-values", value: list(4_000, "user%@example.com"), to: many},
		{name: "much-sent", value: many, to: few, sent: "some words "},
		{name: "used-by-many-calls", value: few, to: few, used: 50_000},
		{name: "too-many-values", value: list(40_000, "user%@example.com"), to: many},
		{name: "values-that-are-not-there", value: list(100_000, "user%@example.com"), to: list(256, "usex%@example.com")},
		{name: "values-within-others", value: list(100_000, "xabcd%"), to: list(256, "abcd")},
		{name: "urls", value: list(60_000, "HTTPS://EXAMPLE.COM/%"), to: list(256, "https://example.com/x%")},
		{name: "dates", value: list(100_000, "November 27, 2026"), to: list(256, "2026-11-28")},
		{name: "numbers-of-accounts", value: list(100_000, "DE89 3704 0044 0532 0130 01"), to: list(256, "DE89370400440532013000")},
		{name: "words-of-prompts", prompt: "word ", to: list(256, "wordx")},
		{name: "within-urls-of-prompts", prompt: ",aaaa=b", to: list(256, "aaaa")},
		{name: "dates-of-prompts", prompt: "November 27, 2026 ", to: list(256, "2026-11-28")},
		{name: "letters-of-prompts", prompt: "你好世界", to: list(256, "word")},
		{name: "sent", value: many, to: many, sent: "some words "},
		{name: "nearly-sent", value: list(256, "aaaaaaaab%"), to: list(256, "aaaaaaaab%"), sent: "aaaaaaaaa"},
	}
}

func (l *large) find(tb testing.TB) func() (*origin.Session, []origin.Leaf) {
	rules, err := origin.Compile(origin.Labels{
		Tools:   []origin.ToolLabel{{Server: "mail", Tool: "list", Results: "trusted"}},
		Roles:   []origin.RoleLabel{{Server: "mail", Tool: "send", Target: []string{"to"}}},
		Prompts: origin.PromptLabel{Pasted: true},
	})
	if err != nil {
		tb.Fatal(err)
	}
	s := &origin.Session{Results: []origin.Result{{Run: "1", Call: 100, Entry: 101, Server: "mail", Tool: "list", Value: canonical.MustMarshal(l.value)}}}
	var sent []origin.Sent
	for i := range int64(64) {
		if l.prompt != "" {
			s.Prompts = append(s.Prompts, origin.Prompt{Entry: i + 1, Source: "user", Text: strings.Repeat(l.prompt, 64<<10/len(l.prompt))})
		}
		if l.sent != "" {
			sent = append(sent, origin.NewSent(i, canonical.MustMarshal(map[string]string{"q": strings.Repeat(l.sent, 64<<10/len(l.sent))}), nil))
		}
	}
	for i := range l.used {
		used := origin.NewSent(int64(200+2*i), canonical.MustMarshal(map[string]string{"to": l.to[0]}),
			[]origin.Leaf{{At: "/to", Origin: origin.Trusted, Source: "100"}})
		used.Returned = used.Call + 1
		sent = append(sent, used)
	}
	s.Sent = func() ([]origin.Sent, string) { return sent, "" }
	args := canonical.MustMarshal(map[string]any{"to": l.to})
	return func() (*origin.Session, []origin.Leaf) { return s, rules.Find(s, "mail", "send", args, nil) }
}

// TestLarge: a search that costs too much finds nothing and says so.
func TestLarge(t *testing.T) {
	for i, l := range larges() {
		s, leaves := l.find(t)()
		if within := i < 4; origin.Found(leaves) != within || (s.Failed == "") != within || !within && !strings.Contains(s.Failed, "steps") {
			t.Errorf("%s: found is %t, and the search failed: %q", l.name, origin.Found(leaves), s.Failed)
		}
	}
}

// BenchmarkLarge: other writers of a ledger wait so long.
func BenchmarkLarge(b *testing.B) {
	for _, l := range larges() {
		find := l.find(b)
		b.Run(l.name, func(b *testing.B) {
			for b.Loop() {
				find()
			}
		})
	}
}
