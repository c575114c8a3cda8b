package llm

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkExtractive(b *testing.B) {
	const paragraph = "Application logs are kept for 90 days, audit logs for 400 days. " +
		"Logs never hold PII in clear text. Exceptions need the approval of the data protection officer. " +
		"Reviews happen every 12 months. "
	for _, size := range []int{2 << 10, 1 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			typed := payload(b, strings.Repeat(paragraph, size/len(paragraph)))
			b.SetBytes(int64(len(typed)))
			b.ReportAllocs()
			for b.Loop() {
				Extractive{}.Summarize("Summarize policy policy-002 on audit logs", typed)
			}
		})
	}
}
