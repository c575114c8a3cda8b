package policy_test

import (
	"strings"
	"testing"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/origin"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/states/statestest"
)

// TestOriginsDecide: without a session, conditions about origins hold or deny, and never allow.
func TestOriginsDecide(t *testing.T) {
	found := &policy.Origins{Leaves: []origin.Leaf{{At: "/to", Role: origin.Target, Origin: origin.Trusted}}}
	for _, tc := range []struct {
		name    string
		policy  rules.Policy
		origins *policy.Origins
		want    policy.Outcome
	}{
		{"held-if-not-found", rules.Policy{Effect: rules.Allow, RequireApprovalIf: `!found()`}, nil, policy.Hold},
		{"made-if-found", rules.Policy{Effect: rules.Allow, RequireApprovalIf: `!found()`}, found, policy.Allow},
		{"held-if-not-of-the-request", rules.Policy{Effect: rules.Allow, RequireApprovalIf: `origin("to") != "request"`}, found, policy.Hold},
		{"allowed-only-if-found", rules.Policy{Effect: rules.Allow, When: `found()`}, nil, policy.Block},
		{"allowed-as-it-is-found", rules.Policy{Effect: rules.Allow, When: `found()`}, found, policy.Allow},
		{"denied-as-untrusted", rules.Policy{Effect: rules.Allow, Deny: `session.untrusted`}, nil, policy.Block},
		{"not-denied-as-untrusted", rules.Policy{Effect: rules.Allow, Deny: `session.untrusted || session.private`}, found, policy.Allow},
		{"denied-as-not-found", rules.Policy{Effect: rules.Allow, Deny: `origin("to") == "none"`}, nil, policy.Block},
	} {
		t.Run(tc.name, func(t *testing.T) {
			content := statestest.Content()
			tc.policy.ID = "p"
			content.Policy = statestest.Policies(tc.policy)
			b, err := policy.Compile(content)
			if err != nil {
				t.Fatal(err)
			}
			a := b.Assess(&condition.Input{Server: statestest.Server, Tool: statestest.Tool, Args: []byte(`{}`),
				Now: statestest.At, Origins: tc.origins})
			if a.Verdict.Outcome != tc.want {
				t.Errorf("the verdict is %+v, want %s", a.Verdict, tc.want)
			}
			if !b.ReadsOrigins() || b.WithDecider(statestest.HoldAll{}).ReadsOrigins() {
				t.Error("the bundle must read origins, and not if somebody else decides")
			}
		})
	}
}

func TestOriginsOfABundle(t *testing.T) {
	content := statestest.Content()
	plain, err := policy.Compile(content)
	if err != nil {
		t.Fatal(err)
	}
	content.Risk = statestest.Ladder(risk.Rule{ID: "r", ScoreExpr: `session.private ? 10 : 0`})
	content.Labels = &origin.Labels{Tools: []origin.ToolLabel{{Server: "s", Tool: "t", Private: true}}}
	labelled, err := policy.Compile(content)
	if err != nil {
		t.Fatal(err)
	}

	if plain.Origins() != nil || plain.ReadsOrigins() {
		t.Error("a bundle without labels has them, or reads origins")
	}
	session := &origin.Session{Results: []origin.Result{{Server: "s", Tool: "t"}}}
	if !labelled.ReadsOrigins() || !labelled.WithDecider(nil).Origins().Private(session) {
		t.Error("the labels or the risk rule are lost")
	}
	content.Labels.Tools[0].Results = "trusted"
	if trusted, err := policy.Compile(content); err != nil || trusted.Digest() == labelled.Digest() {
		t.Errorf("labels do not change the digest: %v", err)
	}
	content.Labels.Tools[0].Results = "some"
	if _, err := policy.Compile(content); err == nil || !strings.Contains(err.Error(), "labels: tools[0]: results") {
		t.Errorf("Compile() = %v, want the place of the fault", err)
	}
}
