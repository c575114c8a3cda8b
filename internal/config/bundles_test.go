package config_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/config"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/prove"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// A starter is a bundle as it is read.
type starter struct {
	risk   *risk.Content
	policy *rules.Content
	tests  []config.PolicyTest
	claims []config.PolicyClaim
}

func mustStarter(t *testing.T, name string) *starter {
	t.Helper()
	files, err := config.StarterFiles(name)
	check.NoError(t, err)
	read := func(name string) []byte {
		return files[slices.IndexFunc(files, func(f config.StarterFile) bool { return f.Name == name })].Text
	}
	s := &starter{}
	if s.risk, _, err = config.ReadRisk("risk.yaml", read("risk.yaml")); err != nil {
		t.Fatal(err)
	}
	if s.policy, _, err = config.ReadPolicy("policy.yaml", read("policy.yaml")); err != nil {
		t.Fatal(err)
	}
	if s.claims, err = config.ReadClaims("claims.yaml", read("claims.yaml")); err != nil {
		t.Fatal(err)
	}
	if s.tests, err = config.ReadPolicyTests("tests.yaml", read("tests.yaml"), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// content is the demo's configuration with the bundle's risk rules and policies.
func (s *starter) content(t *testing.T) policy.Content {
	t.Helper()
	loaded, err := config.Load(config.FileName, config.Demo.ReadFile, config.Overrides{})
	check.NoError(t, err)
	c := loaded.Content
	c.Input.Rules = nil // they take long to compile, and say nothing of calls
	c.Risk, c.Policy = s.risk, s.policy
	return c
}

// judge returns what is decided about each test.
func (s *starter) judge(t *testing.T) []policy.Assessment {
	t.Helper()
	b, err := policy.Compile(s.content(t))
	check.NoError(t, err)
	got := make([]policy.Assessment, len(s.tests))
	for i, test := range s.tests {
		in := &condition.Input{Server: test.Server, Tool: test.Tool, Env: test.Env, Args: test.Args,
			Now: "2026-11-21T08:00:00.000Z", Actor: condition.Actor{ID: test.Actor}}
		judge := b
		if test.Risk != nil {
			judge, in.Risk = b.WithoutRisk(), condition.Risk{Mode: test.Risk.Mode, Score: test.Risk.Score}
		}
		got[i] = judge.Assess(in)
	}
	return got
}

func decision(a *policy.Assessment) string {
	switch a.Verdict.Outcome {
	case policy.Allow:
		return rules.Allow
	case policy.Hold:
		return rules.Pending
	}
	return rules.Deny
}

func eachStarter(t *testing.T, test func(*testing.T, *starter)) {
	t.Helper()
	for _, name := range config.Bundles() {
		t.Run(name, func(t *testing.T) { test(t, mustStarter(t, name)) })
	}
}

// prove returns the status of claims, for the tools that the tests call, in one environment.
func (s *starter) prove(t *testing.T, env string, claims []prove.Claim) map[string]string {
	t.Helper()
	c := s.content(t)
	c.Env = env
	for _, test := range s.tests {
		isSame := func(a policy.Allowance) bool { return a.Server == test.Server && slices.Contains(a.Tools, test.Tool) }
		if !slices.ContainsFunc(c.Allowlist, isSame) {
			c.Allowlist = append(c.Allowlist, policy.Allowance{Server: test.Server, Tools: []string{test.Tool}})
		}
	}
	b, err := policy.Compile(c)
	check.NoError(t, err)
	results, err := prove.Prove(t.Context(), b, claims, prove.Options{})
	check.NoError(t, err)
	status := map[string]string{}
	for _, r := range results {
		if status[r.ID] = r.Status; r.Reason != "" {
			status[r.ID] += ": " + r.Reason
		}
	}
	return status
}

// Each claim of a bundle holds, and some change of a policy contradicts it.
func TestClaimsOfABundle(t *testing.T) {
	eachStarter(t, func(t *testing.T, s *starter) {
		var open []prove.Claim // those that no change has contradicted yet
		for i := range s.claims {
			open = append(open, s.claims[i].Claim)
		}
		for _, env := range []string{"prod", "sandbox"} {
			for id, status := range s.prove(t, env, open) {
				if status != prove.Proved {
					t.Errorf("the claim %s is %s in %s, want it proved", id, status, env)
				}
			}
		}

		for i, p := range s.policy.Policies {
			for _, changed := range [][]rules.Policy{nil, {{ID: p.ID, Match: p.Match, Effect: rules.Allow}},
				{{ID: p.ID, Match: p.Match, Effect: rules.Pending}}, {{ID: p.ID, Effect: rules.Allow}}} {
				c := *s
				c.policy = &rules.Content{Policies: slices.Replace(slices.Clone(s.policy.Policies), i, i+1, changed...)}
				for id, status := range c.prove(t, "prod", open) {
					if status == prove.Refuted {
						open = slices.DeleteFunc(open, func(c prove.Claim) bool { return c.ID == id })
					}
				}
			}
		}
		for _, c := range open {
			t.Errorf("no change of a policy contradicts the claim %s", c.ID)
		}
	})
}

// Each gate does something: without it a test has another result.
func TestEachGateOfABundleFires(t *testing.T) {
	eachStarter(t, func(t *testing.T, s *starter) {
		before := s.decisions(t)
		without := func(what string, change func(*starter)) {
			c := *s
			r, p := *s.risk, *s.policy
			r.Rules, r.ModeByScore, p.Policies = slices.Clone(r.Rules), slices.Clone(r.ModeByScore), slices.Clone(p.Policies)
			c.risk, c.policy = &r, &p
			if change(&c); cmp.Equal(before, c.decisions(t)) {
				t.Errorf("without %s every test has the same result", what)
			}
		}
		for i, p := range s.policy.Policies {
			without("policy "+p.ID, func(c *starter) { c.policy.Policies = slices.Delete(c.policy.Policies, i, i+1) })
			if p.When != "" {
				without("when of "+p.ID, func(c *starter) { c.policy.Policies[i].When = "" })
			}
			if p.Deny != "" {
				without("deny of "+p.ID, func(c *starter) { c.policy.Policies[i].Deny = "" })
			}
			if p.RequireApprovalIf != "" {
				without("require_approval_if of "+p.ID, func(c *starter) {
					q := &c.policy.Policies[i]
					q.RequireApprovalIf, q.Approvers, q.Quorum, q.Expires = "", nil, 0, 0
				})
			}
		}
		for i, r := range s.risk.Rules {
			without("risk rule "+r.ID, func(c *starter) { c.risk.Rules = slices.Delete(c.risk.Rules, i, i+1) })
		}
		for i, m := range s.risk.ModeByScore {
			without("set_mode_by_score of "+m.Mode,
				func(c *starter) { c.risk.ModeByScore = slices.Delete(c.risk.ModeByScore, i, i+1) })
		}
	})
}

// decisions returns what is decided about each test, and by which policies.
func (s *starter) decisions(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, a := range s.judge(t) {
		one := decision(&a) + " " + a.Policy
		for _, shadow := range a.Shadow {
			one += " " + shadow.Policy
		}
		out = append(out, one)
	}
	return out
}
