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
	content.Labels.Tools[0].Items, content.Labels.Tools[0].TrustedIf = "/*", "item.from = 1"
	_, err = policy.Compile(content)
	for _, want := range []string{"tools[0], results: ", "tools[0], trusted_if: 1:11: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Compile() = %v, want %s", err, want)
		}
	}
}

// TestHoldsItem: a condition of trusted_if judges an item for an actor; what fails or is not of the labels does not hold.
func TestHoldsItem(t *testing.T) {
	content := statestest.Content()
	content.Identity = &policy.IdentityRules{Claims: []string{"email", "team"}}
	label := func(tool, condition string) origin.ToolLabel {
		return origin.ToolLabel{Server: "s", Tool: tool, Items: "/*", TrustedIf: condition}
	}
	const own, member, scalar, costly = "item.from == actor.claims.email", "item.team in actor.groups", "item == 7",
		"item.all(a, item.all(b, item.all(c, item.all(d, true))))"
	content.Labels = &origin.Labels{Tools: []origin.ToolLabel{
		label("a", own), label("b", member), label("c", scalar), label("d", costly),
	}}
	b, err := policy.Compile(content)
	if err != nil {
		t.Fatal(err)
	}

	actor := policy.SubjectName("https://id.example", "1")
	full := &policy.Identity{Kind: policy.ActorAgent, Groups: &[]string{"ops"},
		Claims: []policy.Claim{{Name: "email", Value: "ann@example.com"}, {Name: "team", Value: "ops"}}}
	recorded := b.Recorded(actor, full)
	if len(recorded.Claims) != 1 || recorded.Groups == nil {
		t.Fatalf("%+v is recorded, want the claim email and the groups", recorded)
	}
	many := "[" + strings.Repeat("1,", 200) + "1]"

	for _, tc := range []struct {
		name, condition, item string
		want                  bool
	}{
		{"own-mail", own, `{"from":"ann@example.com"}`, true},
		{"mail-of-another", own, `{"from":"eve@example.com"}`, false},
		{"member-is-missing", own, `{"to":"ann@example.com"}`, false},
		{"member-of-a-group", member, `{"team":"ops"}`, true},
		{"scalar", scalar, `7`, true},
		{"no-json", scalar, `7 7`, false},
		{"not-in-the-labels", "true", `7`, false},
		{"too-costly", costly, many, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := b.HoldsItem(actor, recorded)(tc.condition, []byte(tc.item)); got != tc.want {
				t.Errorf("%s holds for %s: %v, want %v", tc.condition, tc.item, got, tc.want)
			}
		})
	}

	if b.HoldsItem("agent", nil)(own, []byte(`{"from":"ann@example.com"}`)) {
		t.Error("an actor without claims has an item of its own")
	}
	holds := b.HoldsItem(actor, recorded)
	if !holds(scalar, []byte(`7`)) || holds(costly, []byte(many)) || holds(scalar, []byte(`7`)) {
		t.Error("a condition holds after the budget was spent, or not before")
	}
}
