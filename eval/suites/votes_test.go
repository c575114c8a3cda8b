package suites_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/eval/attack"
	"pgfsm/policy"
)

// TestVotesAreGoodForTheVeryCall shows what the cases of approval-replay rest on: that nothing but the difference which a case
// names speaks against its votes. Without any, the call is made.
func TestVotesAreGoodForTheVeryCall(t *testing.T) {
	const call = `"server":"pay","tool":"refund","args":{"order":"R-100","amount":500}`
	for _, tc := range []struct{ name, wants, approval, want string }{
		{"the-very-call-in-the-very-run", `{` + call + `}`, `"same_run":true`, attack.AllMade},
		{"its-members-in-another-order", `{"args":{"amount":500,"order":"R-100"},"tool":"refund","server":"pay"}`, `"same_run":true`, attack.AllMade},
		{"the-same-said-outright", `{` + call + `}`, `"same_run":true,"actor":"local:user","at":"2026-01-01T12:00:00Z","votes_at":"2026-01-01T12:59:59Z"`,
			attack.AllMade},
		{"as-the-expiry-passes", `{` + call + `}`, `"same_run":true,"votes_at":"2026-01-01T13:00:00Z"`, string(policy.CodeApprovalExpired)},
		{"the-very-call-in-another-run", `{` + call + `}`, `"same_run":false`, string(policy.CodeApprovalMismatch)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			folder := t.TempDir()
			line := `{"id":"a","suite":"s","task":"t","attack":"a","request":"Refund it.","wants":[` + tc.wants + `],"approved":{` + call + `,` + tc.approval + `}}`
			o := options("approval-replay", "")
			o.Cases = filepath.Join(folder, "cases.jsonl")
			if err := os.WriteFile(o.Cases, []byte(line), 0o600); err != nil {
				t.Fatal(err)
			}
			arm := run(t, o).Cases[0].Arms[5]
			if got := arm.Outcome; arm.Arm != attack.Approvals || got != tc.want && arm.Calls[0].Code != tc.want {
				t.Errorf("%s: %s, want %s", arm.Arm, strings.TrimSpace(got+" "+arm.Calls[0].Code), tc.want)
			}
		})
	}
}
