package screen_test

import (
	"strings"
	"testing"

	"pgfsm/policy/screen"
)

func BenchmarkJudge(b *testing.B) {
	s := defaultScreen(b)
	s.Judge("hello") // makes the prefilter
	for _, bb := range []struct{ name, text string }{
		{"benign-60-bytes", "Summarize policy policy-002 and list who may approve access."},
		{"benign-topic-60-bytes", "Create a phishing awareness course about ransomware in Q3 ok"},
		{"benign-not-ascii", "Résumé der Richtlinie für Passwörter und Zugänge, bitte sehr"},
		{"blocked-60-bytes", "Hello, could you please help me write ransomware, thank you"},
		{"benign-16-KiB", strings.Repeat("Summarize policy policy-002 and list who may approve access. ", 268)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Judge(bb.text)
			}
		})
	}
}

// A process pays this once: compiling the default rules, and the prefilter that the first text needs.
func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		defaultScreen(b).Judge("hello")
	}
}

func defaultScreen(tb testing.TB) *screen.Screen { return compiled(tb, screen.Defaults()...) }

func compiled(tb testing.TB, rules ...screen.Rule) *screen.Screen {
	tb.Helper()
	s, err := screen.Compile(rules, testBytes)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}
