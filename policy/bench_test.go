package policy_test

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"pgfsm/policy"
	"pgfsm/policy/screen"
	"pgfsm/states/statestest"
)

// BenchmarkGates is every gate up to the permit, for a question of ordinary length, the default input rules and a plan
// with eight arguments.
func BenchmarkGates(b *testing.B) {
	content := statestest.Content()
	content.Input.Rules = screen.Defaults()
	bundle := statestest.MustBundle(content, nil)
	listings := statestest.Listings(statestest.Page)
	catalog := bundle.Catalog(policy.DigestOf(listings), listings)
	plan := []byte(statestest.FullPlan)
	b.ReportAllocs()
	for b.Loop() {
		if v := bundle.Screen("Summarize version 3 of policy-002, in English, please"); !v.Allows() {
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
	}
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
