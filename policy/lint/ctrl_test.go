package lint_test

import (
	"slices"
	"testing"

	"pgfsm/policy"
	"pgfsm/policy/lint"
	"pgfsm/policy/rules"
)

// TestShadowedApprovals: a bundle that begins with an allow for everything that is not dangerous, under a name that says
// deny, and has its approvals below. Nobody is ever asked. Four bundles of this shape are published elsewhere.
func TestShadowedApprovals(t *testing.T) {
	const danger = "risk.mode == 'danger'"
	catchAll := rules.Policy{ID: "deny-danger", Effect: rules.Allow, Deny: danger, Match: rules.Match{Server: "*", Tool: "*", Env: "*"}}
	pending := func(id, server, tool, env string) rules.Policy {
		return rules.Policy{ID: id, Effect: rules.Pending, Match: rules.Match{Server: server, Tool: tool, Env: env}}
	}
	asks := func(id, server, tool, env, condition string) rules.Policy {
		return rules.Policy{ID: id, Effect: rules.Allow, RequireApprovalIf: condition, Match: rules.Match{Server: server, Tool: tool, Env: env}}
	}
	for _, tc := range []struct {
		name    string
		below   []rules.Policy
		unasked []string
	}{
		{"gated-deploys", []rules.Policy{pending("prod-deploy", "ci", "deploy*", "prod"), asks("rest", "*", "*", "*", "risk.mode in ['review']")},
			[]string{"prod-deploy", "rest"}},
		{"contextual-controls", []rules.Policy{asks("finance-write", "finance", "write_*", "prod", "risk.score >= 50")},
			[]string{"finance-write"}},
		{"change-management", []rules.Policy{pending("freeze", "git", "merge", "prod"), pending("out-of-hours", "git", "*", "*")},
			[]string{"freeze", "out-of-hours"}},
		{"regulated-data", []rules.Policy{asks("export", "db", "export_*", "*", "args.rows > 1000"), pending("ssn", "db", "query", "*")},
			[]string{"export", "ssn"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			unasked := func(policies []rules.Policy) (ids []string) {
				for _, f := range lint.Lint(&policy.Content{Policy: &rules.Content{Policies: policies}}, nil) {
					if f.Code == lint.ApprovalUnreachable {
						if f.Severity != lint.Error {
							t.Errorf("%v is no error", f)
						}
						ids = append(ids, f.Policy)
					}
				}
				return ids
			}
			if got := unasked(append([]rules.Policy{catchAll}, tc.below...)); !slices.Equal(got, tc.unasked) {
				t.Errorf("approvals never asked for = %q, want %q", got, tc.unasked)
			}
			if got := unasked(append(slices.Clone(tc.below), catchAll)); len(got) > 0 {
				t.Errorf("with the allow at the end, approvals never asked for = %q", got)
			}
			meant := catchAll // what its name says
			meant.When, meant.Effect, meant.Deny = danger, rules.Deny, ""
			if got := unasked(append([]rules.Policy{meant}, tc.below...)); len(got) > 0 {
				t.Errorf("with a denial at the top, approvals never asked for = %q", got)
			}
		})
	}
}
