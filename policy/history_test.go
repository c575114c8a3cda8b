package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/states/statestest"
)

// How many different questions a bundle may ask of history, and one more.
func TestQueriesAreBounded(t *testing.T) {
	for _, c := range []struct {
		n  int
		ok bool
	}{{condition.MaxQueries, true}, {condition.MaxQueries + 1, false}} {
		content := statestest.Content()
		content.Policy = &rules.Content{}
		for i := range c.n - 1 {
			ask := fmt.Sprintf(`history.count("actor", "%ds") > 1`, i+1)
			for _, twice := range []string{"a", "b"} { // the same question is one, however often it is asked
				p := rules.Policy{ID: fmt.Sprint(twice, i), Effect: rules.Allow, Deny: ask}
				content.Policy.Policies = append(content.Policy.Policies, p)
			}
		}
		content.Risk = statestest.Ladder(risk.Rule{ID: "r", ScoreExpr: `history.sum("task", "1h", "n")`})
		b, err := policy.Compile(content)
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "17 different things of history; at most 16") {
			t.Fatalf("Compile() with %d = %v", c.n, err)
		}
		if c.ok && len(b.Queries(statestest.Server, statestest.Tool)) != c.n {
			t.Errorf("%d queries, want %d", len(b.Queries(statestest.Server, statestest.Tool)), c.n)
		}
	}
}

// Only what may be asked about the call is read, in one order.
func TestQueriesOfACall(t *testing.T) {
	content := statestest.Content()
	deny := func(id, tool, cel string) rules.Policy {
		return rules.Policy{ID: id, Match: rules.Match{Tool: tool}, Effect: rules.Allow, Deny: cel}
	}
	content.Policy = statestest.Policies(
		deny("a", "get_*", `history.count("task", "1m") > 1 || history.count("actor", "60m") > 1`),
		deny("b", "drop", `history.sum("actor", "1d", "n") > 1.0`),
		rules.Policy{ID: "c", Effect: rules.Deny, Mode: rules.Shadow, When: `history.count_all("actor", "2h") > 1`},
		rules.Policy{ID: "d", Match: rules.Match{Env: "elsewhere"}, Effect: rules.Deny, When: `history.count_all("actor", "3h") > 1`},
	)
	content.Risk = statestest.Ladder(risk.Rule{ID: "r", Match: risk.Match{Tool: "get_a"}, ScoreExpr: `history.count("actor", "1h") * 10`})
	b, err := policy.Compile(content)
	check.NoError(t, err)
	for tool, want := range map[string][]string{ // order is of no matter
		"get_a": {`history.count("actor", "1h")`, `history.count("task", "1m")`, `history.count_all("actor", "2h")`},
		"drop":  {`history.count_all("actor", "2h")`, `history.sum("actor", "1d", "n")`},
		"other": {`history.count_all("actor", "2h")`},
	} {
		var got []string
		for _, q := range b.Queries("s", tool) {
			got = append(got, q.String())
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("Queries(%s) differs: %s", tool, d)
		}
	}
	if len(b.WithDecider(statestest.HoldAll{}).Queries("s", "drop")) != 0 {
		t.Error("a bundle that asks somebody else reads history")
	}
	without := statestest.Content()
	if b, err = policy.Compile(without); err != nil || len(b.Queries("s", "drop")) != 0 {
		t.Errorf("a bundle without policies asks history: %v", err)
	}
}
