package statestest

import (
	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// Gates is every gate of a run with eight arguments and the default input rules, one after the other and without the
// machine around them: what the machine is measured against.
type Gates struct {
	bundle  *policy.Bundle
	catalog *policy.Catalog
	plan    []byte
	result  []byte
}

// NewGates compiles the gates' configuration.
func NewGates() *Gates {
	content := Content()
	content.Input.Rules = policy.DefaultRules()
	b := MustBundle(content, nil)
	return &Gates{
		bundle: b, catalog: b.Catalog(canonical.Sum("catalog", []byte(Page)), Listings(Page)),
		plan: []byte(FullPlan), result: []byte(GoodResult),
	}
}

// Bundle returns the bundle by which the gates judge.
func (g *Gates) Bundle() *policy.Bundle { return g.bundle }

// UpToPermit passes the gates before the call and returns the tool, or the verdict that stopped it.
func (g *Gates) UpToPermit() (*policy.Tool, policy.Verdict) {
	if v := g.bundle.Screen(FullQuestion); !v.Allows() {
		return nil, v
	}
	p, v := policy.ReadPlan(g.plan, g.bundle.Limits())
	if !v.Allows() {
		return nil, v
	}
	tool, v := g.bundle.Validate(g.catalog, p, nil)
	if !v.Allows() {
		return nil, v
	}
	if v := g.bundle.Authorize(tool, nil, tool.Digest, p.Args, nil); !v.Allows() {
		return nil, v
	}
	return tool, g.bundle.Decide(policy.Question{Server: p.Server, Tool: tool, Arguments: p.Args, Now: At}).Verdict
}

// PassAll passes every gate, the output type's too.
func (g *Gates) PassAll() policy.Verdict {
	tool, v := g.UpToPermit()
	if !v.Allows() {
		return v
	}
	structured, note := policy.ReadResult(g.result, g.bundle.Limits().JSONDepth)
	if note != "" {
		return policy.Verdict{Reason: note}
	}
	return g.bundle.Typed(tool, structured)
}
