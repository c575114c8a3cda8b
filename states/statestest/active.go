package statestest

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/fsm"
	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/policy/screen"
	"pgfsm/states"
)

// A Change changes the operator's configuration while a call is held.
type Change struct {
	Name  string
	Apply func(*policy.Content)
	State fsm.State
	Code  policy.Code // the code of a blocked or failed run
	Note  string      // a part of the note of an answered run
	Calls int
}

// policyChange changes the policy that holds the call.
func policyChange(change func(*rules.Policy)) func(*policy.Content) {
	return func(c *policy.Content) { c.Policy = Policies(withChange(c.Policy.Policies[0], change), denyAll) }
}

// Changes are changes of the configuration of [HeldScenario]: those after which its judgement is the same, and those after which it is not.
func Changes() []Change {
	sameCase := func(name string, apply func(*policy.Content)) Change {
		return Change{Name: name, Apply: apply, State: states.Answered, Calls: 1}
	}
	other := func(name string, code policy.Code, apply func(*policy.Content)) Change {
		return Change{Name: name, Apply: apply, State: states.Blocked, Code: code}
	}
	changed := policy.CodeBundleChanged
	raw := func(text string) jsontext.Value { return jsontext.Value(text) }
	pin := func(d canonical.Digest) func(*policy.Content) {
		return func(c *policy.Content) { c.Pins = []policy.Pin{{Server: Server, Tool: Tool, Definition: d}} }
	}
	smaller, untyped := sameCase("less-result-bytes", func(c *policy.Content) { c.Limits.ResultBytes = 64 }),
		sameCase("output-type", func(c *policy.Content) { c.Outputs[0].Schema = raw(`{"type":"object","properties":{"other":{}}}`) })
	smaller.State, smaller.Code, untyped.Note = states.Failed, policy.CodeResultTooLarge, "not of the tool's output type"
	return []Change{
		sameCase("what-is-the-runs-own", func(c *policy.Content) {
			c.Summary, c.Planner.Mode = policy.SummaryNever, policy.PlannerAuto
		}),
		sameCase("limits-and-timeouts", func(c *policy.Content) { c.Limits.RunTimeout, c.Servers[0].Timeout = 1000, 2000 }),
		sameCase("a-reworded-reason", policyChange(func(p *rules.Policy) { p.Reason = "Owners look." })),
		sameCase("another-server", func(c *policy.Content) {
			c.Servers = append(c.Servers, policy.Server{Name: "other", Type: "http", Timeout: 1})
		}),
		sameCase("another-approver", func(c *policy.Content) { c.Roles[0].Actors = append(slices.Clone(c.Roles[0].Actors), "emil") }),
		sameCase("allow", func(c *policy.Content) { c.Policy = Policies(allowReads) }),
		sameCase("no-policies", func(c *policy.Content) { c.Policy = nil }),
		smaller, untyped,
		other("policy", changed, policyChange(func(p *rules.Policy) { p.ID = "other" })),
		other("condition", changed, policyChange(func(p *rules.Policy) { p.Effect, p.RequireApprovalIf = rules.Allow, "true" })),
		other("quorum", changed, policyChange(func(p *rules.Policy) { p.Quorum = 2 })),
		other("approvers", changed, policyChange(func(p *rules.Policy) { p.Approvers = []string{"owners", "others"} })),
		other("sign-in-time", changed, policyChange(func(p *rules.Policy) { p.Fresh = 5 * 60 * 1000 })),
		other("expiry", changed, policyChange(func(p *rules.Policy) { p.Expires *= 2 })),
		other("risk-mode", changed, func(c *policy.Content) {
			c.Risk = Ladder(withChange(readSecond, func(r *risk.Rule) { r.SetMode = "danger" }))
		}),
		other("risk-score", changed, func(c *policy.Content) {
			c.Risk = Ladder(withChange(readSecond, func(r *risk.Rule) { r.SetMode, r.ScoreExpr = "", "55" }))
		}),
		other("risk-rule", changed, func(c *policy.Content) {
			c.Risk = Ladder(withChange(readSecond, func(r *risk.Rule) { r.ID = "other" }))
		}),
		other("risk-that-allows", changed, func(c *policy.Content) { c.Risk, c.Policy = nil, Policies(allowReads) }),
		other("environment", changed, func(c *policy.Content) { c.Env = "prod" }),
		other("connection", changed, func(c *policy.Content) { c.Servers[0].URL = "http://127.0.0.1:6666/mcp" }),
		other("who-shares-a-session", changed, func(c *policy.Content) { c.Servers[0].Sessions = "one" }),
		other("server-not-configured", changed, func(c *policy.Content) { c.Servers = nil }),
		other("pin", changed, pin(definition())),
		other("pin-of-another-definition", policy.CodeToolDefinitionChanged, pin(canonical.Sum("tool definition", nil))),
		other("approver-without-the-role", policy.CodeApprovalMismatch, func(c *policy.Content) { c.Roles[0].Actors = []string{"emil"} }),
		other("deny", policy.CodePolicyDenied, func(c *policy.Content) { c.Policy = Policies(denyAll) }),
		other("deny-by-now", policy.CodePolicyDenied, policyChange(func(p *rules.Policy) { p.When = "now < timestamp('2026-11-21T09:15:00Z')" })),
		other("condition-of-unread-history", policy.CodePolicyFailed, func(c *policy.Content) { c.Policy = Policies(AtMost) }),
		other("allowlist", policy.CodeToolNotAllowed, func(c *policy.Content) { c.Allowlist = nil }),
		sameCase("grant", func(c *policy.Content) { c.Grants = Granted(func(*policy.Granted) {}) }),
		other("grant-of-no-tool", policy.CodeToolNotGranted, func(c *policy.Content) { c.Grants = []policy.Grant{{Name: "other"}} }),
		other("grant-that-counts", changed, func(c *policy.Content) { c.Grants = Granted(func(g *policy.Granted) { g.Calls = new(2) }) }),
		other("input-rule", policy.CodeInputDenied, func(c *policy.Content) {
			c.Input.Rules = []policy.InputRule{{Rule: screen.Rule{ID: "two", Pattern: "policy-002", Reason: "No."}, On: []string{policy.KindAsk}}}
		}),
		other("plan-bytes", policy.CodePlanTooLarge, func(c *policy.Content) { c.Limits.PlanBytes = 16 }),
	}
}

// definition is the definition of the world's tool.
func definition() canonical.Digest {
	t, _ := MustBundle(Content(), nil).Catalog("", Listings(Page)).Find(Server, Tool)
	return t.Digest
}

// HeldScenario is the scenario of a held call that one of its owners approved, with nothing changed.
func HeldScenario() Scenario {
	for _, s := range heldByPolicy() {
		if s.Name == "policy-holds-and-a-person-approves" {
			return s
		}
	}
	panic("statestest: the scenario has another name")
}

// Content returns the scenario's content with the change.
func (c *Change) Content(s *Scenario) policy.Content {
	target := s.Content
	target.Servers, target.Outputs, target.Roles = slices.Clone(target.Servers), slices.Clone(target.Outputs), slices.Clone(target.Roles)
	c.Apply(&target)
	return target
}

// activeBundles are approved runs that find another configuration, or none.
func activeBundles() (all []Scenario) {
	for _, c := range Changes() {
		s := HeldScenario()
		s.Name, s.State, s.Code, s.Note, s.Calls = "active-"+c.Name, c.State, c.Code, c.Note, c.Calls
		s.World.Active = MustBundle(c.Content(&s), nil)
		all = append(all, s)
	}
	falseBundle := func(name string, change func(*states.ActiveBundle)) {
		s := HeldScenario()
		s.Name, s.State, s.Code, s.Calls = "active-"+name, states.Blocked, policy.CodeBundleChanged, 0
		s.World.Active = MustBundle(Content(), nil)
		s.Handler = func(d states.EffectHandler) states.EffectHandler { return liar{d, change} }
		all = append(all, s)
	}
	falseBundle("that-is-no-bundle", func(a *states.ActiveBundle) { a.Content = jsontext.Value(`{}`) })
	falseBundle("with-an-unknown-member", func(a *states.ActiveBundle) { a.Content = jsontext.Value(`{"x":1}`) })
	falseBundle("of-another-digest", func(a *states.ActiveBundle) { a.Digest = canonical.Sum("bundle", nil) })
	falseBundle("with-grants-of-its-own", func(a *states.ActiveBundle) {
		c := HeldScenario().Content
		c.Grants = []policy.Grant{}
		c.Planner.Mode = policy.PlannerAuto
		a.Content = canonical.MustMarshal(&c)
		a.Digest = canonical.Sum("bundle", a.Content)
	})
	withSchema := func(schema string) policy.Content {
		c := HeldScenario().Content
		c.Pins = []policy.Pin{{Definition: Definition(), Server: Server, Tool: Tool}}
		c.Schemas = []policy.ToolSchema{{Server: Server, Tool: Tool, Schema: jsontext.Value(schema)}}
		return c
	}
	schema := HeldScenario()
	schema.Name, schema.State, schema.Code, schema.Calls = "active-another-own-schema", states.Blocked, policy.CodeBundleChanged, 0
	schema.Content, schema.World.Active = withSchema(InputSchema), MustBundle(withSchema(`{"type":"object","properties":{"policy_id":{}}}`), nil)
	early := HeldScenario()
	early.Name, early.State, early.Code, early.Calls = "active-before-the-approval", states.Failed, policy.CodeEffectFailed, 0
	early.World.Decided = nil
	early.World.Listed[0] = states.Shared(&states.ToolsListed{Bundle: &states.ActiveBundle{Content: jsontext.Value(`{}`)}, Servers: Listings(Page)})
	none := HeldScenario()
	none.Name, none.State, none.Code, none.Calls = "active-that-is-unknown", states.Blocked, policy.CodeBundleChanged, 0
	none.Handler = func(d states.EffectHandler) states.EffectHandler {
		d.(*states.Live).Active = nil
		return d
	}
	return append(all, schema, early, none)
}

// liar changes the handler's answers about the active bundle.
type liar struct {
	states.EffectHandler
	change func(*states.ActiveBundle)
}

// Do changes the active bundle.
func (l liar) Do(ctx context.Context, c states.Command) (states.Event, error) {
	ev, err := l.EffectHandler.Do(ctx, c)
	if listed, ok := ev.(*states.ToolsListed); ok && listed.Bundle != nil {
		bundle := *listed.Bundle
		l.change(&bundle)
		ev = states.Shared(&states.ToolsListed{Bundle: &bundle, Servers: listed.Servers})
	}
	return ev, err
}
