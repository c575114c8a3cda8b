package policy_test

import (
	"strings"
	"testing"

	"pgfsm/policy"
	"pgfsm/states/statestest"
)

// TestNullsForOptionalArguments: null is refused where the schema has no null, and the reason says which argument to leave out.
func TestNullsForOptionalArguments(t *testing.T) {
	const schema = `{"type":"object","properties":{"policy_id":{"type":"string"},"limit":{"type":"integer"},"order":{"enum":["up","down"]},
		"either":{"anyOf":[{"type":"string"},{"type":"integer"}]},"none":{"type":["string","null"]},"only":{"const":1},
		"list":{"type":"array","items":{"type":"object","properties":{"tag":{"type":"string"}}}}}}`
	b := statestest.MustBundle(statestest.Content(), nil)
	c := catalog(t, page(`{"name":"fetch_policy_entry","inputSchema":`+schema+`}`))
	for _, tc := range []struct {
		name, args string
		places     []string // what is to be left out; none: the arguments are valid, or null is not what is wrong
		valid      bool
	}{
		{"type", `{"limit":null}`, []string{"/limit"}, false},
		{"enum", `{"order":null}`, []string{"/order"}, false},
		{"alternatives", `{"either":null}`, []string{"/either"}, false},
		{"several", `{"limit":null,"order":null,"policy_id":"policy-002"}`, []string{"/limit", "/order"}, false},
		{"null-is-a-value", `{"none":null}`, nil, true},
		{"left-out", `{"policy_id":"policy-002"}`, nil, true},
		{"another-type", `{"limit":"1"}`, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, v := b.Validate(c, must(strings.Replace(statestest.GoodPlan, `{"policy_id":"policy-002"}`, tc.args, 1)), nil)
			if v.Allows() != tc.valid || !tc.valid && v.Code != policy.CodeArgumentsInvalid {
				t.Fatalf("the verdict is %+v", v)
			}
			for _, place := range tc.places {
				if !strings.Contains(v.Reason, ` "`+place+`" is null: leave it out if it is optional.`) {
					t.Errorf("the reason is %q, want it to say that %s is left out", v.Reason, place)
				}
			}
			if n := strings.Count(v.Reason, "leave it out"); n != len(tc.places) {
				t.Errorf("%d arguments are to be left out, want %d: %q", n, len(tc.places), v.Reason)
			}
		})
	}
}
