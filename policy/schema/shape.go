package schema

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A Shape holds the schemas that all apply to a value. A keyword of one of them that a value breaks
// excludes the value, whatever else the schemas say. Without a schema, every value is possible.
type Shape struct {
	Roots []*jsonschema.Schema // the schemas of the value
	All   []*jsonschema.Schema // these, with what $ref and allOf add to them
}

// ShapeOf returns the shape of the values of some schemas.
func ShapeOf(roots ...*jsonschema.Schema) Shape {
	s := Shape{Roots: roots}
	var add func(*jsonschema.Schema)
	add = func(n *jsonschema.Schema) {
		if n == nil || slices.Contains(s.All, n) {
			return
		}
		s.All = append(s.All, n)
		add(n.Ref)
		for _, part := range n.AllOf {
			add(part)
		}
	}
	for _, n := range roots {
		add(n)
	}
	return s
}

// Member returns the shape of a member, and whether the member can be there.
func (s *Shape) Member(name string) (member Shape, possible bool) {
	var roots []*jsonschema.Schema
	for _, n := range s.All {
		byPattern := false
		for pattern := range n.PatternProperties { // in no order: one that matches is enough
			byPattern = byPattern || pattern.MatchString(name)
		}
		others, isSchema := n.AdditionalProperties.(*jsonschema.Schema)
		switch part := n.Properties[name]; {
		case part != nil:
			roots = append(roots, part)
		case byPattern:
		case n.AdditionalProperties == false:
			return Shape{}, false
		case isSchema:
			roots = append(roots, others)
		}
	}
	return ShapeOf(roots...), true
}

// Names returns the names of members that the schemas name, in order.
func (s *Shape) Names() (names []string) {
	for _, n := range s.All {
		names = slices.AppendSeq(names, maps.Keys(n.Properties))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Required returns the names of members that must be there, in order.
func (s *Shape) Required() (names []string) {
	for _, n := range s.All {
		names = append(names, n.Required...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Element returns the shape of every element of a list.
func (s *Shape) Element() Shape {
	var roots []*jsonschema.Schema
	for _, n := range s.All {
		if n.Items2020 != nil && len(n.PrefixItems) == 0 {
			roots = append(roots, n.Items2020)
		}
		if every, ok := n.Items.(*jsonschema.Schema); ok {
			roots = append(roots, every)
		}
	}
	return ShapeOf(roots...)
}

// Kinds returns the types of values for which the schemas leave room, as JSON Schema calls them. An integer is a number.
func (s *Shape) Kinds() []string {
	all := []string{"null", "boolean", "number", "string", "array", "object"}
	return slices.DeleteFunc(all, func(kind string) bool { return !s.Admits(kind) })
}

// maxAlternatives bounds the anyOf in anyOf that Admits follows.
const maxAlternatives = 6

// Admits reports whether the schemas leave room for values of a type.
func (s *Shape) Admits(kind string) bool { return s.admits(kind, maxAlternatives) }

func (s *Shape) admits(kind string, level int) bool {
	return !slices.ContainsFunc(s.All, func(n *jsonschema.Schema) bool {
		byType := n.Types == nil || n.Types.IsEmpty() || slices.ContainsFunc(n.Types.ToStrings(), func(name string) bool {
			return name == kind || name == "integer" && kind == "number"
		})
		byAny := len(n.AnyOf) == 0 || level == 0 || slices.ContainsFunc(n.AnyOf, func(one *jsonschema.Schema) bool {
			part := ShapeOf(one)
			return part.admits(kind, level-1)
		})
		isKind := func(v any) bool { return kindOf(v) == kind }
		listed := (n.Enum == nil || slices.ContainsFunc(n.Enum.Values, isKind)) && (n.Const == nil || isKind(*n.Const))
		return n.Bool != nil && !*n.Bool || !byType || !byAny || !listed
	})
}

// kindOf returns the type of a value as the compiler holds it.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}
