package policy_test

import (
	"strings"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states/statestest"
)

// TestLargeArguments judges arguments at their bounds and one past them, and what is recorded in place of them.
func TestLargeArguments(t *testing.T) {
	b := statestest.MustBundle(statestest.Content(), nil)
	const around, names = len(`{"text":""}`), `{"server":"s","tool":"t","type":"call_tool"}`
	text := func(size int) string { return `{"text":"` + strings.Repeat("a", size-around) + `"}` }
	values := func(n int) string { return `{"a":[0` + strings.Repeat(",0", n-3) + `]}` }
	for _, tc := range []struct {
		name, args string
		large      bool
		reason     string
	}{
		{"bytes-at-the-limit", text(1 << 20), false, ""},
		{"bytes-one-past", text(1<<20 + 1), true, "The arguments have 1048577 bytes; at most 1048576 are accepted."},
		{"white-space-counts", `{` + strings.Repeat(" ", 1<<20) + `}`, true, "The arguments have 1048578 bytes; at most 1048576 are accepted."},
		{"values-at-the-limit", values(policy.MaxArgumentsValues), false, ""},
		{"values-one-past", values(policy.MaxArgumentsValues + 1), true, "The arguments have 50001 values; at most 50000 are accepted."},
		{"names-repeat", strings.Replace(text(1<<20), `{`, `{"text":0,`, 1), true, "The arguments have 1048585 bytes; at most 1048576 are accepted."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plan := []byte(`{ "args" : ` + tc.args + ` , "server":"s","tool":"t","type":"call_tool"}`)
			rest, large := b.CutArguments(plan)
			v := b.ScreenCall(policy.KindAgent, plan, nil)
			if !tc.large {
				if large != nil || string(rest) != string(plan) || !v.Allows() {
					t.Errorf("CutArguments() = %.80s, %+v; ScreenCall() = %+v", rest, large, v)
				}
				return
			}
			want := policy.LargeArguments{Bytes: len(tc.args), Digest: canonical.Sum("large arguments", []byte(tc.args)), Values: large.Values}
			if string(rest) != names || *large != want || v.Code != policy.CodeArgumentsTooLarge || v.Reason != tc.reason {
				t.Errorf("CutArguments() = %.80s, %+v; ScreenCall() = %+v", rest, large, v)
			}
		})
	}
	for _, plan := range []string{strings.Repeat("x", 1<<20+1), `{"args":{}} ` + strings.Repeat("x", 1<<20), `{"args":{},"x":"` + strings.Repeat("x", 1<<20) + `"}`} {
		if rest, large := b.CutArguments([]byte(plan)); rest != nil || large == nil || large.Bytes != len(plan) {
			t.Errorf("%.30s…: %d bytes are left, %+v", plan, len(rest), large)
		}
	}
}
