package schema

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// names evaluates propertyNames instead of the validator, whose error shares the memory of its location with the next
// member: it reports "/b" for "/a", depending on the order of a map. The validator has the same fault in contentSchema,
// which is not asserted here.
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

// replacePropertyNames replaces the validator's propertyNames by names. It runs last, because costs and the closed world read
// propertyNames where the compiler put it.
func replacePropertyNames(nodes []*node) {
	for _, n := range nodes {
		if n.PropertyNames != nil {
			n.Extensions = append(slices.Clone(n.Extensions), names{n.PropertyNames})
			n.PropertyNames = nil
		}
	}
}
