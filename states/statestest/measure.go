package statestest

import (
	"bytes"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

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

// NewGates compiles what the gates need.
func NewGates() *Gates {
	content := Content()
	content.Input.Rules = policy.DefaultRules()
	b := MustBundle(content, nil)
	return &Gates{
		bundle: b, catalog: b.Catalog(canonical.Sum("catalog", []byte(Page)), Listings(Page)),
		plan: []byte(FullPlan), result: []byte(GoodResult),
	}
}

// Bundle is what the gates judge by.
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

// All passes every gate, the output type's too.
func (g *Gates) All() policy.Verdict {
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

// BareValidator returns the floor: the validator alone, by the same schema, on the bytes of the same arguments.
func BareValidator() func() error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(InputSchema)))
	if err != nil {
		panic(fmt.Sprintf("statestest: %v", err))
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:schema", doc); err != nil {
		panic(fmt.Sprintf("statestest: %v", err))
	}
	schema := c.MustCompile("mem:schema")
	plan, v := policy.ReadPlan([]byte(FullPlan), policy.DefaultLimits())
	if !v.Allows() {
		panic("statestest: " + v.Reason)
	}
	return func() error {
		args, err := jsonschema.UnmarshalJSON(bytes.NewReader(plan.Args))
		if err != nil {
			return err
		}
		return schema.Validate(args)
	}
}
