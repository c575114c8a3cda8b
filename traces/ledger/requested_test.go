package ledger_test

import (
	"strings"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// TestRefusedCallsAreFound: a call that was refused before its plan was validated is found by what it names.
func TestRefusedCallsAreFound(t *testing.T) {
	const plan = `{"args":{"policy_id":"policy-42"},"server":"crm","tool":"drop_all","type":"call_tool"}`
	named := func(name string) string { return strings.Replace(plan, "drop_all", name, 1) }
	argued := func(args string) string { return strings.Replace(plan, `{"policy_id":"policy-42"}`, args, 1) }
	for _, tt := range []struct {
		name, scenario, text string
		found                ledger.Filter
		want                 string // the arguments in the row
	}{
		{"unknown-tool", "agent-tool-that-the-kept-listing-lacks", plan, ledger.Filter{Server: "crm", Tool: "drop_all", Text: "policy-42"}, `{"policy_id":"policy-42"}`},
		{"denied-by-an-input-rule", "agent-input-rule-on-agents", named("ransomware"), ledger.Filter{Server: "crm", Tool: "ransomware", Text: "policy-42"},
			`{"policy_id":"policy-42"}`},
		{"longest-name", "agent-tool-that-the-kept-listing-lacks", named(strings.Repeat("t", 256)), ledger.Filter{Tool: strings.Repeat("t", 256)},
			`{"policy_id":"policy-42"}`},
		{"too-long-a-name", "agent-tool-that-the-kept-listing-lacks", named(strings.Repeat("t", 257)), ledger.Filter{Server: "crm", Text: "policy-42"},
			`{"policy_id":"policy-42"}`},
		{"large-arguments", "agent-tool-that-the-kept-listing-lacks", argued(`{"a":"` + strings.Repeat("x", ledger.MaxInline) + `"}`), ledger.Filter{Tool: "drop_all"}, ""},
		{"arguments-in-another-form", "agent-tool-that-the-kept-listing-lacks", argued(`{ "b":1, "a":"x" }`), ledger.Filter{Text: `{"a":"x","b":1}`}, `{"a":"x","b":1}`},
		{"arguments-recorded-by-their-digest", "agent-arguments-too-large", argued(`{"policy_id":"policy-0042"}`), ledger.Filter{Server: "crm", Tool: "drop_all"}, ""},
		{"no-plan", "agent-tool-that-the-kept-listing-lacks", `{"server":`, ledger.Filter{Code: "plan_not_strict"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, s := newFixture(t), statestest.Find(t, tt.scenario)
			s.Request.Text = canonical.Text(tt.text)
			run := ledgertest.NewID(t)
			if o, _, err := d.play(run, &s); err != nil || o.State != "blocked" {
				t.Fatalf("play() = %+v, %v", o, err)
			}
			var found []ledger.RunRow
			d.Inspect(func(r ledger.Reader) error {
				for q, err := range r.Runs(tt.found) {
					if err != nil {
						return err
					}
					found = append(found, q)
				}
				return nil
			})
			if len(found) != 1 || found[0].Validated() || found[0].Args != tt.want {
				t.Errorf("Requests() = %+v, want the run, unverified, with the arguments %s", found, tt.want)
			}
			d.sound()
		})
	}
}
