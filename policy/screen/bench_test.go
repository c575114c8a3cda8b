package screen

import (
	"strings"
	"testing"
)

func BenchmarkJudge(b *testing.B) {
	s := defaultScreen(b)
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

func BenchmarkJudge_WithoutPrefilter(b *testing.B) {
	s := unfiltered(defaultScreen(b))
	b.ReportAllocs()
	for b.Loop() {
		s.Judge("Summarize policy policy-002 and list who may approve access.")
	}
}

// What a process pays once, and what it pays for the same rules again.
func BenchmarkCompile(b *testing.B) {
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		rules := Defaults()
		for b.Loop() {
			if _, err := compileRules(rules); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("again", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			defaultScreen(b)
		}
	})
}
