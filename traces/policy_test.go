package traces_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
)

// TestReplayUnderAnotherPolicyDiverges: a trace whose bundle names another policy than the run had is not the run's.
func TestReplayUnderAnotherPolicyDiverges(t *testing.T) {
	m := statestest.MustMachine(t)
	s := statestest.Find(t, "policy-allows")
	_, doc := record(t, m, &s)
	trace, err := traces.Read(doc)
	check.NoError(t, err)
	for name, c := range map[string]*rules.Content{ // each alone
		"denies": statestest.Policies(), "holds": statestest.Policies(rules.Policy{ID: "h", Effect: rules.Pending}),
		"allows-by-another": statestest.Policies(rules.Policy{ID: "other", Effect: rules.Allow}),
	} {
		t.Run(name, func(t *testing.T) {
			p := traces.NewReplayer(m, func(content policy.Content) (*policy.Bundle, error) {
				b, err := policy.Compile(content)
				if err != nil {
					return nil, err
				}
				content.Policy = c
				return b.WithDecider(statestest.MustBundle(content, nil)), nil
			})
			if _, err := p.Replay(trace); err == nil || !strings.Contains(err.Error(), "divergence_") {
				t.Errorf("Replay() = %v, want a divergence", err)
			}
		})
	}
}

// TestPolicyFactsAreKept: the trace of a continued run has the results of risk rules and policies.
func TestPolicyFactsAreKept(t *testing.T) {
	m := statestest.MustMachine(t)
	raised := []risk.Contribution{{Matched: true, Mode: "review", Reason: "This policy is looked at.", Rule: "second", Score: 50}}
	for _, tt := range []struct {
		name string
		want states.AssessedFact
	}{
		{"policy-allows", states.AssessedFact{Mode: policy.Unrated, Policy: "reads"}},
		{"policy-match-fails-and-goes-on", states.AssessedFact{Mode: policy.Unrated, Policy: "reads"}},
		{"risk-without-policies", states.AssessedFact{Mode: "review", Score: 50, Risk: raised}},
		{"risk-that-is-not-raised", states.AssessedFact{Mode: "safe", Policy: "reads"}},
		{"policy-on-trial-is-recorded", states.AssessedFact{
			Mode: "review", Score: 50, Risk: raised, Policy: "reads",
			Shadow: []rules.ShadowDecision{{Effect: rules.Deny, Policy: "trial"}, {Effect: rules.Pending, Policy: "trial-hold"}},
		}},
		{"policy-holds", states.AssessedFact{
			Mode: "review", Score: 50, Risk: raised, Policy: "looked-at", Approvers: []string{"owners"}, Quorum: 1,
			Expires: "2026-11-21T10:00:00Z",
		}},
		{"policy-asks-by-condition", states.AssessedFact{
			Mode: "review", Score: 50, Risk: raised, Policy: "reads", Condition: "require_approval_if", Quorum: rules.DefaultQuorum,
			Expires: "2026-11-22T09:00:00Z",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := statestest.Find(t, tt.name)
			_, doc := record(t, m, &s)
			got := assessedFact(t, doc)
			got.Arguments, got.Bundle, got.Definition, got.Plan, got.Verdict = "", "", "", "", policy.Verdict{}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("assessed (-want +got):\n%s", d)
			}
		})
	}
}

// TestFailedRiskIsKept: a rule that could not be evaluated says so in the trace, and why.
func TestFailedRiskIsKept(t *testing.T) {
	m := statestest.MustMachine(t)
	for name, rule := range map[string]string{"risk-that-fails-is-more": "old", "risk-of-an-unknown-argument": "german"} { // each alone
		s := statestest.Find(t, name)
		_, doc := record(t, m, &s)
		got := assessedFact(t, doc)
		if len(got.Risk) != 1 || got.Risk[0].Rule != rule || got.Risk[0].Failed == "" || got.Mode == "safe" {
			t.Errorf("%s: %+v, want a more severe mode by %s, with what failed", name, got, rule)
		}
	}
}

// assessedFact returns the recorded fact of the step that assessed.
func assessedFact(t *testing.T, doc []byte) (f states.AssessedFact) {
	t.Helper()
	trace, err := traces.Read(doc)
	check.NoError(t, err)
	for _, step := range trace.Steps {
		if step.To == states.Assessed {
			check.NoError(t, canonical.Unmarshal(step.Facts, &f))
			return f
		}
	}
	t.Fatalf("no step of the run, which ended as %s, assessed it", trace.Outcome.State)
	return f
}

// TestEveryChangeOfPolicyFactsIsDetected is [TestEveryChangeIsDetected] for runs that rules and policies decided.
func TestEveryChangeOfPolicyFactsIsDetected(t *testing.T) {
	m := statestest.MustMachine(t)
	for _, name := range []string{"policy-on-trial-is-recorded", "risk-that-fails-is-more"} {
		s := statestest.Find(t, name)
		_, doc := record(t, m, &s)
		var tree any
		check.NoError(t, json.Unmarshal(doc, &tree))
		changes := 0
		visit(tree, "", func(any) {}, func(change spot) {
			changes++
			checkSpot(t, name, change)
		}, func() []byte { return canonical.MustMarshal(tree) })
		if changes < 150 {
			t.Errorf("%s: only %d changes were tried", name, changes)
		}
	}
}
