package eval_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/eval"
)

func TestApproval(t *testing.T) {
	const call = `"server":"s","tool":"t","args":{"b":1, "a":2}`
	for _, tc := range []struct{ name, approved, want string }{
		{"a-call", `{` + call + `}`, ""},
		{"a-plan", `{"plan":"anything"}`, ""},
		{"all-that-there-is", `{` + call + `,"bundle":"b/pgfsm.yaml","actor":"local:a","at":"2026-01-01T00:00:00Z","votes_at":"2026-01-01T00:00:01Z","same_run":true}`, ""},
		{"no-call", `{"same_run":true}`, `"/approved" lacks "server"`},
		{"a-plan-and-a-call", `{` + call + `,"plan":"x"}`, `"/approved/server"`},
		{"unknown-member", `{` + call + `,"run":"same"}`, "run"},
		{"hidden-actor", `{` + call + `,"actor":"a\u200b"}`, `"/approved/actor"`},
		{"at-without-seconds", `{` + call + `,"at":"2026-01-01T00:00Z"}`, `"/approved/at"`},
		{"votes-at-with-an-offset", `{` + call + `,"votes_at":"2026-01-01T00:00:00+01:00"}`, `"/approved/votes_at"`},
		{"same-run-as-text", `{` + call + `,"same_run":"yes"}`, "same_run"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			line := `{"id":"i","suite":"s","task":"t","attack":"a","request":"r","wants":[{` + call + `}],"approved":` + tc.approved + `}`
			cases, err := eval.ReadCases("cases.jsonl", strings.NewReader(line))
			if tc.want != "" {
				var fault *eval.Fault
				if !errors.As(err, &fault) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("ReadCases() = %v, want a fault with %q", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			c := cases[0]
			if c.Approved.Plan == nil {
				if diff := cmp.Diff(`{"a":2,"b":1}`, string(c.Approved.Args)); diff != "" {
					t.Errorf("args (-canonical +read):\n%s", diff)
				}
			}
			again, err := c.Line()
			if err != nil {
				t.Fatal(err)
			}
			if twice, err := eval.ReadCases("again", strings.NewReader(string(again))); err != nil || cmp.Diff(cases, twice) != "" {
				t.Errorf("written and read again: %v\n%s", err, cmp.Diff(cases, twice))
			}
		})
	}
}
