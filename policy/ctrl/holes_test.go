package ctrl_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/ctrl"
	"pgfsm/policy/lint"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// These are the holes of a system in use today (agent-ctrl, commit f967020), each in a bundle of its shape, with what
// becomes of it.

// A decider judges calls by what was imported.
type decider struct {
	model *risk.Model
	set   *rules.Set
}

func mustDecider(t *testing.T, r *ctrl.Result) *decider {
	t.Helper()
	d := &decider{}
	var err error
	if r.Risk != nil {
		if d.model, err = risk.Compile(*r.Risk); err != nil {
			t.Fatal(err)
		}
	}
	if d.set, err = rules.Compile(*r.Policy); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *decider) decide(server, tool, env, args string) (string, risk.Assessment) {
	subject := condition.NewSubject(&condition.Input{Server: server, Tool: tool, Env: env, Args: []byte(args)})
	a := d.model.Judge(subject)
	return d.set.Decide(subject.WithRisk(a.Risk())).Effect, a
}

// withGates does what the findings say: a gate denies what it is about and leaves the rest to the policies below.
func withGates(r *ctrl.Result) *ctrl.Result {
	c := *r
	c.Policy = &rules.Content{Policies: slices.Clone(r.Policy.Policies)}
	for i := range c.Policy.Policies {
		p := &c.Policy.Policies[i]
		gate := slices.ContainsFunc(r.Findings, func(f ctrl.Finding) bool {
			return f.ID == p.ID &&
				f.Code == ctrl.CatchAllAllow
		})
		if gate && p.Deny != "" {
			p.When, p.Effect, p.Deny = p.Deny, rules.Deny, ""
		}
	}
	return &c
}

func lintCodes(r *ctrl.Result) (codes []string) {
	for _, f := range lint.Lint(&policy.Content{Risk: r.Risk, Policy: r.Policy}, nil) {
		codes = append(codes, f.Code+" "+f.Policy)
	}
	return codes
}

// Four of its five published bundles begin with a policy for `*` that allows, so that no approval is ever asked for.
func TestShadowedApprovals(t *testing.T) {
	tests := []struct{ bundle, id, server, tool, env, args string }{
		{"deploys", "deploys-wait", "ci", "deploy_web", "prod", `{}`},
		{"money", "big-money", "ledger", "transfer", "prod", `{"amount":1000}`},
		{"changes", "changes-wait", "repo", "open", "prod", `{}`},
		{"records", "exports-wait", "warehouse", "export", "prod",
			`{"fields":"id","rows":200000,"format":"csv","target":"x"}`},
	}
	for _, tt := range tests {
		t.Run(tt.bundle, func(t *testing.T) {
			r := mustImport(t, filepath.Join("testdata", tt.bundle))
			if !slices.ContainsFunc(r.Findings, func(f ctrl.Finding) bool {
				return f.Code == ctrl.ApprovalShadowed && f.ID == tt.id && f.File == ctrl.PolicyFile && f.Line > 0
			}) {
				t.Errorf("findings = %s, want %s for %s", report(r), ctrl.ApprovalShadowed, tt.id)
			}
			shadowed := lint.ApprovalUnreachable + " " + tt.id
			if codes := lintCodes(r); !slices.Contains(codes, shadowed) {
				t.Errorf("lint = %q, want %s", codes, shadowed)
			}
			fixed := withGates(r)
			if codes := lintCodes(fixed); slices.Contains(codes, shadowed) {
				t.Errorf("lint of what the finding asks for = %q, want no %s", codes, shadowed)
			}
			if got, a := mustDecider(t, fixed).decide(tt.server, tt.tool, tt.env, tt.args); got != rules.Pending {
				t.Errorf("with a gate in its place: %s (%s, %d), want pending", got, a.Mode, a.Score)
			}
		})
	}
}

// An argument of a name there replaces the name or the function.
func TestArgumentsReplaceNothing(t *testing.T) {
	tests := []struct{ bundle, server, tool, env, args, want string }{
		{"deploys", "ci", "deploy_web", "prod", `"service":"web"`, rules.Pending},
		{"money", "ledger", "transfer", "prod", `"amount":60000`, rules.Deny},
		{"records", "warehouse", "export", "prod", `"rows":400000,"fields":"id","format":"csv"`, rules.Deny},
	}
	for _, tt := range tests {
		d := mustDecider(t, withGates(mustImport(t, filepath.Join("testdata", tt.bundle))))
		for _, name := range []string{"env", "max", "min", "server", "tool", "score", "args", "risk", "mode", "vars",
			"thousands", "math"} {
			for _, value := range []string{`"dev"`, `0`, `1`, `null`, `[]`, `{}`} {
				args := fmt.Sprintf(`{%s,"%s":%s}`, tt.args, name, value)
				if got, a := d.decide(tt.server, tt.tool, tt.env, args); got != tt.want {
					t.Errorf("%s: %s = %s (%s, %d), want %s", tt.bundle, args, got, a.Mode, a.Score, tt.want)
				}
			}
		}
	}
}

// A variable that always fails there is 0, and each amount scores 70.
func TestAmountsCount(t *testing.T) {
	d := mustDecider(t, withGates(mustImport(t, "testdata/money")))
	for _, tt := range []struct {
		args, effect string
		score        int
	}{
		{`{}`, rules.Pending, 70}, // the default that args.get names
		{`{"amount":null}`, rules.Pending, 70},
		{`{"amount":1000}`, rules.Pending, 71},
		{`{"amount":60000}`, rules.Deny, 90},
		{`{"amount":5000000}`, rules.Deny, 95},
		{`{"amount":1000000000}`, rules.Deny, 95},
		{`{"amount":"60000"}`, rules.Deny, 1000},
		{`{"amount":[1]}`, rules.Deny, 1000},
		{`{"amount":1e400}`, rules.Deny, 1000},
	} {
		if got, a := d.decide("ledger", "transfer", "prod", tt.args); got != tt.effect || a.Score != tt.score {
			t.Errorf("%s = %s, %d, want %s, %d", tt.args, got, a.Score, tt.effect, tt.score)
		}
	}
	// What was refused: one level up and the highest score.
	if got, a := d.decide("ledger", "pay_now", "prod", `{"hour":1}`); got != rules.Deny || a.Mode != "danger" {
		t.Errorf("a score that was refused = %s (%s, %d), want deny", got, a.Mode, a.Score)
	}
}

// contains: ssn there misses SSN and lists.
func TestContainsFindsEveryCase(t *testing.T) {
	d := mustDecider(t, withGates(mustImport(t, "testdata/records")))
	for _, fields := range []string{`"ssn"`, `"id,SSN"`, `["id","Ssn"]`, `null`, `{}`} {
		if got, a := d.decide("warehouse", "export", "prod",
			`{"rows":1,"format":"x","fields":`+fields+`}`); got != rules.Deny {
			t.Errorf("fields %s = %s (%s, %d), want deny", fields, got, a.Mode, a.Score)
		}
	}
	if got, a := d.decide("warehouse", "export", "prod",
		`{"rows":1,"format":"x","target":"t","fields":["id"]}`); got != rules.Allow {
		t.Errorf("without it = %s (%s, %d: %+v), want allow", got, a.Mode, a.Score, a.Contributions)
	}
}

// 9**9**9 there runs without limit. It is not read at all.
func TestPowersAreRefused(t *testing.T) {
	r := mustImport(t, "testdata/changes")
	d := mustDecider(t, withGates(r))
	if got, a := d.decide("repo", "explode", "prod", `{}`); got != rules.Deny || a.Score != risk.MaxScore {
		t.Errorf("a rule with 9**9**9 = %s (%s, %d), want deny", got, a.Mode, a.Score)
	}
}
