package backtest_test

import (
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
)

// TestCompareOfAnIdentity: a policy may read groups and claims; what the run did not record is
// unknown, and the call is not compared.
func TestCompareOfAnIdentity(t *testing.T) {
	const subject = "https://login.example.com#8f1c"
	full := &policy.Identity{Claims: []policy.Claim{{Name: "department", Value: "sales"}}, Groups: &[]string{"oncall"}, Kind: policy.ActorAgent}
	for _, tt := range []struct {
		name, actor, recorded, draft string // conditions; recorded: empty reads nothing
		want                         string
		unknown                      []string
	}{
		{"recorded-claim", subject, "actor.claims.department != 'law'", "actor.claims.department == 'sales'", rules.Allow, nil},
		{"recorded-groups", subject, "actor.groups.size() > 0", "'oncall' in actor.groups", rules.Allow, nil},
		{"claim-not-recorded", subject, "", "actor.claims.department == 'sales'", "", []string{"actor.claims.department"}},
		{"claim-not-configured", subject, "", "actor.claims.region == 'eu'", "", []string{"actor.claims.region"}},
		{"groups-not-recorded", subject, "", "'oncall' in actor.groups", "", []string{"actor.groups"}},
		{"not-reached", subject, "", "tool == 'other' && 'oncall' in actor.groups", rules.Deny, nil},
		{"no-identity-provider", "local:alice", "", "size(actor.groups) == 0", rules.Allow, nil},
		{"claim-of-no-identity-provider", "local:alice", "", "actor.claims.department == 'sales'", rules.Deny, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := statestest.Content()
			c.Identity = &policy.IdentityRules{Claims: []string{"department"}}
			c.Policy = statestest.Policies(rules.Policy{ID: "then", When: tt.recorded, Effect: rules.Allow})
			bundle := statestest.MustBundle(c, nil)
			trace := traceOf(t, bundle, states.Request{Actor: tt.actor, Text: canonical.Text((&pastCall{version: 1}).plan()), Identity: bundle.Recorded(tt.actor, full)})
			checkDraft(t, trace, tt.draft, tt.want, tt.unknown...)
		})
	}
}
