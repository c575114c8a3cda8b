package risk_test

import (
	"fmt"
	"testing"

	"pgfsm/policy/risk"
)

const benchArgs = `{"amount":250,"currency":"EUR","fields":["name","mail"],"note":"rent","to":{"country":"FR","iban":"FR76"}}`

// rulesFor makes n rules, of which the last matches. With narrow the globs of the others fail, else their predicates.
func rulesFor(n int, narrow bool) risk.Content {
	var rules []risk.Rule
	for i := range n - 1 {
		r := risk.Rule{ID: fmt.Sprintf("r%d", i), Escalate: true}
		if narrow {
			r.Match.Server = fmt.Sprintf("server-%d-*", i)
		} else {
			r.Args = [][]risk.Predicate{arg("amount", "gt", "1000"), arg("/to/country", "in", `["KP","IR"]`),
				arg("fields", "contains", `"ssn"`), arg("note", "matches", `"(?i)gift"`)}[i%4]
		}
		rules = append(rules, r)
	}
	return content(append(rules, risk.Rule{ID: "last", ScoreExpr: "score + double(args.amount) / 100.0", Reason: "By amount."})...)
}

// TestAllocations: rules whose globs fail cost no allocation, and expressions are not read again.
func TestAllocations(t *testing.T) {
	in := call(benchArgs)
	per := func(n int) float64 {
		m := compile(t, rulesFor(n, true))
		return testing.AllocsPerRun(100, func() { m.Assess(in) })
	}
	few := per(10)
	for _, n := range []int{100, risk.MaxRules} {
		if got := per(n); got != few {
			t.Errorf("Assess allocates %v times with %d rules, want %v as with 10", got, n, few)
		}
	}
	if few > 100 { // reading an expression alone takes several hundred
		t.Errorf("Assess allocates %v times, want at most 100", few)
	}
}
