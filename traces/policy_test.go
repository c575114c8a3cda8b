package traces_test

import (
	"testing"

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
			Expires: "2026-11-21T10:00:00.000Z",
		}},
		{"policy-asks-by-condition", states.AssessedFact{
			Mode: "review", Score: 50, Risk: raised, Policy: "reads", Condition: "require_approval_if", Quorum: rules.DefaultQuorum,
			Expires: "2026-11-22T09:00:00.000Z",
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
