package rules

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExplain_Sentences(t *testing.T) {
	s := mustCompile(t,
		Policy{ID: "other-server", Match: Match{Server: "crm*"}, Effect: Deny},
		Policy{ID: "other-tool", Match: Match{Tool: "get_?"}, Effect: Deny},
		Policy{ID: "other-env", Match: Match{Server: "b*", Env: "test"}, Effect: Deny},
		Policy{ID: "false", Effect: Deny, When: "risk.score > 5"},
		Policy{ID: "quotes", Effect: Deny, When: `env == "test"`},
		Policy{ID: "quotes-of-both-kinds", Effect: Deny, When: "env == \"te`st\""},
		Policy{ID: "failed-allow", Effect: Allow, When: "args.x == 1"},
		Policy{ID: "trial", Effect: Allow, Mode: Shadow, Deny: "env == 'prod'"},
		Policy{ID: "trial-that-fails", Effect: Deny, Mode: Shadow, When: "args.x == 1"},
		Policy{ID: "trial-of-effect", Effect: Pending, Mode: Shadow},
		Policy{ID: "approval", Effect: Allow, Deny: "env == 'test'", RequireApprovalIf: "args.amount > 3"},
		Policy{ID: "not-reached", Effect: Deny},
	)
	missing := failureOf(t, "args.x == 1", `{"amount":4}`)
	want := []Considered{
		{Policy: "other-server", Why: `the server "billing" is not "crm*"`},
		{Policy: "other-tool", Why: `the tool "pay" is not "get_?"`},
		{Policy: "other-env", Why: `the environment "prod" is not "test"`},
		{Policy: "false", Why: `when, "risk.score > 5", is false`},
		{Policy: "quotes", Why: "when, `env == \"test\"`, is false"},
		{Policy: "quotes-of-both-kinds", Why: "when, \"env == \"te`st\"\", is false"},
		{Policy: "failed-allow",
			Why: `when, "args.x == 1", failed, and a policy that can only allow does not match then: ` + missing},
		{Policy: "trial", Shadow: true, Matched: true, Why: `deny, "env == 'prod'", is true, which says deny`},
		{Policy: "trial-that-fails", Shadow: true, Matched: true,
			Why: `when, "args.x == 1", failed, which denies: ` + missing},
		{Policy: "trial-of-effect", Shadow: true, Matched: true, Why: `its effect is pending`},
		{Policy: "approval", Matched: true, Why: `require_approval_if, "args.amount > 3", is true, which says pending`},
	}
	d, got := s.Explain(fresh(call(`{"amount":4}`)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Explain() (-want +got):\n%s", diff)
	}
	if d.Policy != "approval" || d.Effect != Pending || len(d.Shadow) != 3 {
		t.Errorf("Explain() decides %+v, want approval to hold beside three on trial", d)
	}
}

func TestExplain_ShowsNamesFromOutsideVisibly(t *testing.T) {
	in := call(`{}`)
	in.Tool = "pay\x1b[2K\n" + strings.Repeat("x", 1000)
	_, all := mustCompile(t, Policy{ID: "it", Match: Match{Tool: "get"}, Effect: Deny}).Explain(fresh(in))
	if why := all[0].Why; strings.ContainsAny(why, "\x1b\n") || len(why) > 2*maxQuoted {
		t.Errorf("Explain() says %q", why)
	}
}
