package policy_test

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/screen"
	"pgfsm/states/statestest"
)

// BenchmarkGates is every gate, for a question of ordinary length, the default input rules, a plan with eight arguments and
// a typed result: up to the permit, and all of them.
func BenchmarkGates(b *testing.B) {
	content := statestest.Content()
	content.Input.Rules = screen.Defaults()
	bundle := statestest.MustBundle(content, nil)
	catalog := bundle.Catalog(canonical.Sum("catalog", []byte(statestest.Page)), statestest.Listings(statestest.Page))
	plan := []byte(statestest.FullPlan)
	upToPermit := func(b *testing.B) *policy.Tool {
		if v := bundle.Screen(statestest.FullQuestion); !v.Allows() {
			b.Fatal(v)
		}
		p, v := policy.ReadPlan(plan, bundle.Limits())
		if !v.Allows() {
			b.Fatal(v)
		}
		tool, v := bundle.Validate(catalog, p)
		if !v.Allows() {
			b.Fatal(v)
		}
		if v := bundle.Authorize(tool, tool.Digest); !v.Allows() {
			b.Fatal(v)
		}
		a := bundle.Decide(policy.Question{Server: p.Server, Tool: tool, Arguments: p.Args, Now: statestest.At})
		if !a.Verdict.Allows() {
			b.Fatal(a)
		}
		return tool
	}
	b.Run("up-to-permit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			upToPermit(b)
		}
	})
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			tool := upToPermit(b)
			structured, note := policy.ReadResult([]byte(statestest.GoodResult), policy.DefaultJSONDepth)
			if note != "" {
				b.Fatal(note)
			}
			if v := bundle.Typed(tool, structured); !v.Allows() {
				b.Fatal(v)
			}
		}
	})
}

// BenchmarkBareValidator is the floor: the validator alone, by the same schema, on the bytes of the arguments.
func BenchmarkBareValidator(b *testing.B) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(statestest.InputSchema)))
	if err != nil {
		b.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:schema", doc); err != nil {
		b.Fatal(err)
	}
	schema := c.MustCompile("mem:schema")
	var plan struct {
		Args jsontext.Value `json:"args"`
	}
	if err := json.Unmarshal([]byte(statestest.FullPlan), &plan); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		args, err := jsonschema.UnmarshalJSON(bytes.NewReader(plan.Args))
		if err != nil {
			b.Fatal(err)
		}
		if err := schema.Validate(args); err != nil {
			b.Fatal(err)
		}
	}
}
