package backtest_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/backtest"
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
			plan := (&pastCall{version: 1}).plan()
			run := states.NewRun("01890a5d-ac96-774b-bcce-000000000001", states.Request{
				Actor: tt.actor, At: statestest.At, Kind: states.KindCall, Text: canonical.Text(plan), Identity: bundle.Recorded(tt.actor, full),
			}, bundle)
			machine := statestest.MustMachine(t)
			trace := traceOf(t, machine, run)
			dir := t.TempDir()
			file := func(name, text string) string {
				path := filepath.Join(dir, name)
				check.NoError(t, os.WriteFile(path, []byte(text), 0o600))
				return path
			}
			before, err := backtest.ReadJudge(file("old.yaml", "version: 1\npolicies: [{id: all, effect: allow}]\n"), os.ReadFile)
			check.NoError(t, err)
			after, err := backtest.ReadJudge(file("new.yaml", "version: 1\npolicies:\n  - {id: new, when: \""+tt.draft+"\", effect: allow}\n"), os.ReadFile)
			check.NoError(t, err)
			comparer := backtest.Comparer{Old: before, New: after, Replayer: traces.NewReplayer(machine, nil)}
			r := backtest.NewReport([]backtest.Call{comparer.Compare("one", trace, nil)})
			if len(tt.unknown) > 0 {
				if r.Judged != 0 || r.Unusable != 0 || len(r.Unknown) != 1 || !slices.Equal(r.Unknown[0].Unknown, tt.unknown) {
					t.Errorf("NewReport() = %+v, want unknown %q", r, tt.unknown)
				}
				return
			}
			i := slices.IndexFunc(r.Decisions, func(d backtest.DecisionCount) bool { return d.Calls > 0 })
			if r.Judged != 1 || len(r.Unknown) != 0 || r.Decisions[i].New != tt.want {
				t.Errorf("NewReport() = %+v, want %s", r, tt.want)
			}
		})
	}
}
