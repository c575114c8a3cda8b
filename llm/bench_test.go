package llm

import (
	"fmt"
	"strings"
	"testing"

	"pgfsm/policy"
)

func BenchmarkRouter(b *testing.B) {
	routes := make([]policy.Route, 0, 11)
	for i := range 10 {
		routes = append(routes, one(fmt.Sprint("other-", i), fmt.Sprintf(`(?i)\b(kind%d-\d+)\b`, i), `{"id":"${1}"}`))
	}
	router := mustRouter(b, append(routes, one("policy", `(?i)\b(policy-\d+)\b`, `{"policy_id":"${1}"}`))...)
	allowed := []Tool{{Server: "kb", Name: "fetch_policy_entry"}, {Server: "kb", Name: "search_policy_kb"}}
	for _, bb := range []struct{ name, request string }{
		{"last-route", "Summarize policy policy-002"},
		{"no-route", "What is going on with all of this today"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				router.Plan(bb.request, allowed)
			}
		})
	}
}

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
