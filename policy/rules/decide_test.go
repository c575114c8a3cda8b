package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pgfsm/internal/test/check"
	"pgfsm/policy/condition"
)

func mustCompile(tb testing.TB, policies ...Policy) *Set {
	tb.Helper()
	s, err := Compile(Content{Policies: policies})
	if err != nil {
		tb.Fatalf("Compile() = %v, want no error", err)
	}
	return s
}

// fresh returns a subject that nothing has looked at.
func fresh(in condition.Input) *condition.Subject { return condition.NewSubject(&in) }

// call is a call to pay of billing in prod.
func call(args string) condition.Input {
	return condition.Input{Server: "billing", Tool: "pay", Env: "prod", Args: []byte(args), Now: "2026-11-21T00:00:00.000Z"}
}

// emptyIsNil treats no list and an empty one alike.
var emptyIsNil = cmpopts.EquateEmpty()

// failing reads well and fails whatever the call is.
const failing = "args.no_such_argument == 1"

// failureOf is what package condition says when source fails for these arguments.
func failureOf(t *testing.T, source, args string) string {
	t.Helper()
	env, err := condition.PolicyEnv()
	check.NoError(t, err)
	p, err := env.Bool(source)
	check.NoError(t, err)
	_, err = p.True(fresh(call(args)))
	if err == nil {
		t.Fatalf("%s does not fail for %s", source, args)
	}
	return err.Error()
}

func TestDecide_Situations(t *testing.T) {
	cap := Policy{ID: "cap", Match: Match{Server: "billing", Tool: "pay"}, Effect: Allow, Deny: "args.amount > 1000",
		RequireApprovalIf: "args.amount > 100", Reason: "Amounts above 100 need finance, above 1000 nobody pays.",
		Approvers: []string{"role:finance"}, Quorum: 2, Expires: 3600_000}
	everything := Policy{ID: "everything", Effect: Allow}
	denied := func(p Policy, condition string) Decision {
		return Decision{Effect: Deny, Policy: p.ID, Condition: condition, Reason: p.Reason}
	}
	held := Decision{Effect: Pending, Policy: "cap", Condition: "require_approval_if", Reason: cap.Reason,
		Approvers: []string{"role:finance"}, Quorum: 2, Expires: 3600_000}
	nobody := Decision{Effect: Deny, Reason: noMatch}
	failure := func(source, args string) string { return "policy_failed: " + failureOf(t, source, args) }
	for _, tc := range []struct {
		name     string
		policies []Policy
		args     string
		want     Decision
	}{
		{"small-amount", []Policy{cap}, `{"amount":100}`, Decision{Effect: Allow, Policy: "cap", Reason: cap.Reason}},
		{"amount-for-a-person", []Policy{cap}, `{"amount":100.5}`, held},
		{"amount-for-nobody", []Policy{cap}, `{"amount":1001}`, denied(cap, "deny")},
		{"no-glob-fits", []Policy{with(cap, func(p *Policy) { p.Match.Tool = "Pay" })}, `{"amount":1}`, nobody},
		{"first-match-wins", []Policy{everything, cap}, `{"amount":1001}`,
			Decision{Effect: Allow, Policy: "everything", Reason: `The policy "everything" allows the call.`}},
		{"plain-hold-with-defaults", []Policy{{ID: "ask", Effect: Pending}}, `{}`, Decision{Effect: Pending, Policy: "ask",
			Quorum:  1,
			Expires: 86_400_000, Reason: `The policy "ask" holds the call for approvers.`}},
		{"failing-allow-is-passed-over", []Policy{{ID: "a", Effect: Allow, When: "args.x == 1"}, {ID: "b", Effect: Deny}},
			`{}`,
			Decision{Effect: Deny, Policy: "b", Reason: `The policy "b" denies the call.`}},
		{"arguments-cannot-shadow-names", []Policy{{ID: "prod", Effect: Deny, When: "env == 'prod' && risk.score == 0"},
			everything},
			`{"env":"dev","risk":{"score":7},"args":1}`, Decision{Effect: Deny, Policy: "prod",
				Reason: `The policy "prod" denies the call.`}},
		{"text-where-a-number-is-compared", []Policy{cap, everything}, `{"amount":"1"}`, Decision{Effect: Deny,
			Policy: "cap", Condition: "deny",
			Failed: failure("args.amount > 1000", `{"amount":"1"}`),
			Reason: `The condition deny of the policy "cap" failed, so the call is denied.`}},
		{"shadow-beside-the-decision", []Policy{with(cap, func(p *Policy) { p.Mode = Shadow }), everything}, `{"amount":101}`,
			Decision{Effect: Allow, Policy: "everything", Reason: `The policy "everything" allows the call.`,
				Shadow: []ShadowDecision{{Policy: "cap", Effect: Pending, Condition: "require_approval_if"}}}},
		{"shadow-cannot-allow", []Policy{{ID: "s", Effect: Allow, Mode: Shadow}}, `{}`,
			Decision{Effect: Deny, Reason: noMatch, Shadow: []ShadowDecision{{Policy: "s", Effect: Allow}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := mustCompile(t, tc.policies...).Decide(fresh(call(tc.args)))
			if diff := cmp.Diff(tc.want, got, emptyIsNil); diff != "" {
				t.Errorf("Decide(%s) (-want +got):\n%s", tc.args, diff)
			}
		})
	}
}

// The three ways that a condition can go, and not being written.
var ways = []struct{ name, source string }{{"absent", ""}, {"true", "pinned || true"}, {"false", "pinned && false"},
	{"error", failing}}

// Every effect, with every way of when, deny and require_approval_if, enforced and in shadow. The table is the manual.
func TestDecide_EveryCombination(t *testing.T) {
	const passed = "" // the next policy decides
	// what deny and require_approval_if make of effect allow, where the policy matches
	matched := map[[2]string]string{
		{"absent", "absent"}: Allow, {"absent", "true"}: Pending, {"absent", "false"}: Allow, {"absent", "error"}: "failed",
		{"true", "absent"}: Deny, {"true", "true"}: Deny, {"true", "false"}: Deny, {"true", "error"}: Deny,
		{"false", "absent"}: Allow, {"false", "true"}: Pending, {"false", "false"}: Allow, {"false", "error"}: "failed",
		{"error", "absent"}: "failed", {"error", "true"}: "failed", {"error", "false"}: "failed", {"error",
			"error"}: "failed",
	}
	cases := 0
	for _, effect := range []string{Allow, Deny, Pending} {
		for _, when := range ways {
			for _, deny := range ways {
				for _, ask := range ways {
					if effect != Allow && (deny.source != "" || ask.source != "") {
						continue
					}
					want := effect
					if effect == Allow {
						want = matched[[2]string{deny.name, ask.name}]
					}
					switch {
					case when.name == "false":
						want = passed
					case when.name == "error" && effect == Allow && deny.source == "" && ask.source == "":
						want = passed
					case when.name == "error":
						want = "failed"
					}
					p := Policy{ID: "it", Effect: effect, When: when.source, Deny: deny.source, RequireApprovalIf: ask.source}
					cases++
					t.Run(fmt.Sprintf("%s-when-%s-deny-%s-approval-%s", effect, when.name, deny.name, ask.name), func(t *testing.T) {
						combination(t, p, want)
					})
				}
			}
		}
	}
	if want := 4*4*4 + 2*4; cases != want {
		t.Errorf("%d combinations, want %d", cases, want)
	}
}

// combination puts a policy above one of each effect.
func combination(t *testing.T, p Policy, want string) {
	effect, id := want, "it"
	if want == "failed" {
		effect = Deny
	}
	for _, next := range []string{Allow, Deny, Pending} {
		below := Policy{ID: "below", Effect: next}
		wantEffect, wantID := effect, id
		if want == "" {
			wantEffect, wantID = next, "below"
		}
		got := mustCompile(t, p, below).Decide(fresh(call(`{}`)))
		if got.Effect != wantEffect || got.Policy != wantID || strings.HasPrefix(got.Failed,
			CodeFailed+": ") != (want == "failed") {
			t.Errorf("Decide() above %s = %+v, want %s by %s", next, got, wantEffect, wantID)
		}
		if (got.Quorum > 0) != (got.Effect == Pending) || (got.Expires > 0) != (got.Effect == Pending) || got.Reason == "" {
			t.Errorf("Decide() above %s = %+v: quorum and expiry belong to what is held, a reason to all", next, got)
		}
		p := with(p, func(p *Policy) { p.Mode = Shadow })
		got = mustCompile(t, p, below).Decide(fresh(call(`{}`)))
		if got.Effect != next || got.Policy != "below" || got.Failed != "" {
			t.Errorf("Decide() in shadow above %s = %+v, want what stands below", next, got)
		}
		switch {
		case want == "" && len(got.Shadow) != 0:
			t.Errorf("Decide() in shadow = %+v, want nothing recorded of what does not match", got.Shadow)
		case want != "" && (len(got.Shadow) != 1 || got.Shadow[0].Effect != effect ||
			(got.Shadow[0].Failed != "") != (want == "failed")):
			t.Errorf("Decide() in shadow = %+v, want %s recorded", got.Shadow, want)
		}
	}
}

func TestDecide_NothingDenies(t *testing.T) {
	in := call(`{}`)
	for name, s := range map[string]*Set{"nil": nil, "zero": {}, "compiled-from-nothing": mustCompile(t),
		"no-subject": mustCompile(t, allow("a"))} {
		sub := fresh(in)
		if name == "no-subject" {
			sub = nil
		}
		want := Decision{Effect: Deny, Reason: noMatch}
		if got := s.Decide(sub); !cmp.Equal(got, want) {
			t.Errorf("%s: Decide() = %+v, want %+v", name, got, want)
		}
		if got, all := s.Explain(sub); !cmp.Equal(got, want) || all != nil {
			t.Errorf("%s: Explain() = %+v, %v, want %+v", name, got, all, want)
		}
	}
}

func TestDecide_UnusableArgumentsDeny(t *testing.T) {
	s := mustCompile(t, Policy{ID: "it", Effect: Deny, When: "args.n == 1"}, allow("all"))
	for _, args := range []string{``, `{`, `[]`, `1`, `{"n":1e400}`, `{"n":9223372036854775808123}`} {
		if got := s.Decide(fresh(call(args))); got.Effect != Deny || got.Policy != "it" || got.Failed == "" {
			t.Errorf("Decide(%q) = %+v, want a failure of it", args, got)
		}
	}
}

func TestDecide_RiskOfTheSubject(t *testing.T) {
	s := mustCompile(t, Policy{ID: "danger", Effect: Deny,
		When: "risk.mode == 'danger' || risk.score > 90 || 'r1' in risk.rules"}, allow("all"))
	for _, tc := range []struct {
		name, want string
		risk       condition.Risk
	}{
		{"none", Allow, condition.Risk{}},
		{"mode", Deny, condition.Risk{Mode: "danger"}},
		{"score-at-the-limit", Allow, condition.Risk{Score: 90}},
		{"score-beyond", Deny, condition.Risk{Score: 91}},
		{"rule", Deny, condition.Risk{Rules: []string{"r0", "r1"}}},
	} {
		if got := s.Decide(fresh(call(`{}`)).WithRisk(tc.risk)); got.Effect != tc.want {
			t.Errorf("%s: Decide() = %+v, want %s", tc.name, got, tc.want)
		}
	}
}

// What a condition failed on may have been written by the planner.
func TestDecide_FailuresAreVisibleAndShort(t *testing.T) {
	s := mustCompile(t, Policy{ID: "it", Effect: Deny, When: "int(args.n) > 1"})
	args := `{"n":"\u001b[31m\u202e` + strings.Repeat("x", 10_000) + `"}`
	got := s.Decide(fresh(call(args)))
	if got.Failed == "" || len(got.Failed) > 4*maxFailed || strings.ContainsAny(got.Failed, "\x1b\u202e\n") {
		t.Errorf("Decide() failed with %d bytes, %q", len(got.Failed), got.Failed)
	}
	_, all := s.Explain(fresh(call(args)))
	if why := all[0].Why; len(why) > 8*maxFailed || strings.ContainsAny(why, "\x1b\u202e\n") {
		t.Errorf("Explain() says %q", why)
	}
}

// Who holds a decision cannot change the policy by it.
func TestDecide_ApproversAreACopy(t *testing.T) {
	given := []string{"a", "b"}
	s := mustCompile(t, Policy{ID: "it", Effect: Pending, Approvers: given})
	given[0] = "mallory"
	s.Decide(fresh(call(`{}`))).Approvers[1] = "mallory"
	if got := s.Decide(fresh(call(`{}`))).Approvers; !cmp.Equal(got, []string{"a", "b"}) {
		t.Errorf("Decide().Approvers = %q", got)
	}
}
