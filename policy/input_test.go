package policy_test

import (
	"strings"
	"testing"

	"pgfsm/policy"
	"pgfsm/policy/screen"
	"pgfsm/states/statestest"
)

// TestArgumentsBytes judges arguments at their default bound and one byte past it.
func TestArgumentsBytes(t *testing.T) {
	b := statestest.MustBundle(statestest.Content(), nil)
	const around = len(`{"text":""}`)
	for _, kind := range []string{policy.KindAgent, policy.KindCall} {
		for _, tc := range []struct {
			name, text string
			size       int
			code       policy.Code
		}{
			{"at-the-limit", strings.Repeat("a", 1<<20-around), 1 << 20, ""},
			{"one-past", strings.Repeat("a", 1<<20-around+1), 1<<20 + 1, policy.CodeArgumentsTooLarge},
			{"escapes-count-as-what-they-stand-for", strings.Repeat(`\u0061`, 1<<20-around), 1 << 20, ""},
		} {
			t.Run(kind+"/"+tc.name, func(t *testing.T) {
				text := `{ "args" : {"text":"` + tc.text + `"},"server":"s","tool":"t","type":"call_tool"}`
				if v := b.ScreenCall(kind, []byte(text), nil); v.Code != tc.code || v.Allows() != (tc.code == "") {
					t.Errorf("ScreenCall() = %+v, want %q", v, tc.code)
				}
				if p, v := policy.ReadCall([]byte(text), b.Limits()); !v.Allows() || len(p.Args) != tc.size {
					t.Errorf("ReadCall() = %+v, want arguments of %d bytes", v, tc.size)
				}
			})
		}
	}
	if v := b.ScreenCall(policy.KindAgent, make([]byte, 1<<20+1), nil); v.Code != policy.CodeArgumentsTooLarge {
		t.Errorf("ScreenCall() of a text without a plan = %+v, want %s", v, policy.CodeArgumentsTooLarge)
	}
}

// TestInputRuleKinds refuses rules that do not say for what they are.
func TestInputRuleKinds(t *testing.T) {
	for _, tc := range []struct {
		name string
		on   []string
		says string
	}{
		{"all", []string{policy.KindAsk, policy.KindCall, policy.KindAgent}, ""},
		{"none", nil, "on no kind of request"},
		{"unknown", []string{"asks"}, `on "asks"`},
		{"round", []string{"round"}, `on "round"`},
		{"twice", []string{policy.KindAsk, policy.KindAsk}, "each at most once"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			content := statestest.Content()
			content.Input.Rules = []policy.InputRule{{Rule: screen.Rule{ID: "a", Pattern: "x", Reason: "r"}, On: tc.on}}
			if _, err := policy.Compile(content); (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Compile() = %v, want %q", err, tc.says)
			}
		})
	}
}
