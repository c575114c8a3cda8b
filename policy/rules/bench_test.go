package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cedar-policy/cedar-go"

	"pgfsm/internal/test/check"
	"pgfsm/policy/condition"
)

// benchmarkCall is allowed by the last of the policies that policiesForBenchmark returns. The others
// fail on the server's glob.
var benchmarkCall = condition.Input{
	Server: "billing-eu",
	Tool:   "pay_invoice",
	Env:    "prod",
	Now:    "2026-11-21T00:00:00.000Z",
	Args:   []byte(`{"amount":250,"currency":"EUR","invoice":"2026-117"}`),
	Risk:   condition.Risk{Score: 50, Mode: "review"},
}

func policiesForBenchmark(n int) []Policy {
	policies := numbered(n, func(p *Policy) { p.Match.Server = "team-" + p.ID + "-*" })
	policies[n-1].Match = Match{Server: "billing-*", Tool: "pay_*"}
	policies[n-1].When = "args.amount <= 1000 && risk.mode != 'danger'"
	return policies
}

// decideBy returns a function that decodes the arguments and decides about the call by n policies.
func decideBy(tb testing.TB, n int) func() bool {
	set := mustCompile(tb, policiesForBenchmark(n)...)
	return func() bool { return set.Decide(fresh(benchmarkCall)).Effect == Allow }
}

// decideByCedar is decideBy with the same policies in Cedar.
func decideByCedar(tb testing.TB, n int) func() bool {
	var text strings.Builder
	for i, p := range policiesForBenchmark(n) {
		fmt.Fprintf(&text, "permit (principal, action, resource) when { context.server like %q", p.Match.Server)
		if i == n-1 {
			fmt.Fprintf(&text, ` && context.tool like %q && context.args.amount <= 1000 && context.mode != "danger"`, p.Match.Tool)
		}
		text.WriteString(" };\n")
	}
	policies, err := cedar.NewPolicySetFromBytes("benchmark.cedar", []byte(text.String()))
	check.NoError(tb, err)

	return func() bool {
		var args cedar.Record
		check.NoError(tb, args.UnmarshalJSON(benchmarkCall.Args))
		decision, _ := cedar.Authorize(policies, cedar.EntityMap{}, cedar.Request{
			Principal: cedar.NewEntityUID("Actor", "a"),
			Action:    cedar.NewEntityUID("Action", "call"),
			Resource:  cedar.NewEntityUID("Tool", "pay_invoice"),
			Context: cedar.NewRecord(cedar.RecordMap{
				"server": cedar.String(benchmarkCall.Server),
				"tool":   cedar.String(benchmarkCall.Tool),
				"mode":   cedar.String(benchmarkCall.Risk.Mode),
				"args":   args,
			}),
		})
		return decision == cedar.Allow
	}
}

// BenchmarkDecide compares 50 policies with the same in Cedar, and 1,000 with 50, in turns, so that a
// machine whose speed drifts does not change the ratios.
func BenchmarkDecide(b *testing.B) {
	contestants := []func() bool{decideBy(b, 50), decideByCedar(b, 50), decideBy(b, 1000)}
	took := make([]time.Duration, len(contestants))
	for b.Loop() {
		for i, decide := range contestants {
			begun := time.Now()
			for range 20 {
				if !decide() {
					b.Fatalf("contestant %d did not allow the call", i)
				}
			}
			took[i] += time.Since(begun)
		}
	}

	b.ReportMetric(float64(took[0])/float64(took[1]), "50/cedar")
	b.ReportMetric(float64(took[2])/float64(took[0]), "1000/50")
}
