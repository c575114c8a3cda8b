package schema

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// names judges propertyNames in place of the validator, which reports the place of the object in memory that it then
// uses for the next member: "/b" where "/a" is meant, or not, depending on which it comes to first. It has the same
// fault in contentSchema, which is not asserted here.
type names struct{ of *node }

// Validate implements [jsonschema.SchemaExt].
func (n names) Validate(ctx *jsonschema.ValidatorContext, v any) {
	object, _ := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		err := n.of.Validate(name)
		if invalid, ok := err.(*jsonschema.ValidationError); ok {
			ctx.AddErr(&jsonschema.ValidationError{
				SchemaURL:        n.of.Location,
				InstanceLocation: slices.Clone(ctx.ValueLocation()),
				ErrorKind:        &kind.PropertyNames{Property: name},
				Causes:           invalid.Causes,
			})
		}
	}
}

// namesInPlace puts names in the place of the validator's own propertyNames. It comes last: what reads nodes to know
// what they cost and say finds propertyNames where the compiler put it.
func namesInPlace(nodes []*node) {
	for _, n := range nodes {
		if n.PropertyNames != nil {
			n.Extensions = append(slices.Clone(n.Extensions), names{n.PropertyNames})
			n.PropertyNames = nil
		}
	}
}
