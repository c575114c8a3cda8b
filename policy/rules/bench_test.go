package rules

import (
	"fmt"
	"testing"

	"pgfsm/policy/condition"
)

// BenchmarkDecide judges a call, with arguments that are decoded for it, by policies of which only the last fits. The others fail on
// the server's glob.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{50, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			policies := numbered(n, func(p *Policy) { p.Match.Server = "team-" + p.ID + "-*" })
			policies[n-1].Match = Match{Server: "billing-*", Tool: "pay_*"}
			policies[n-1].When = "args.amount <= 1000 && risk.mode != 'danger'"
			set := mustCompile(b, policies...)
			in := condition.Input{Server: "billing-eu", Tool: "pay_invoice", Env: "prod", Now: "2026-11-21T00:00:00Z",
				Args: []byte(`{"amount":250,"currency":"EUR","invoice":"2026-117"}`), Risk: condition.Risk{Score: 50, Mode: "review"}}
			for b.Loop() {
				if d := set.Decide(fresh(in)); d.Effect != Allow {
					b.Fatalf("Decide() = %+v, want the call allowed", d)
				}
			}
		})
	}
}
