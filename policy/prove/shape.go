package prove

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A shape holds the schemas that all apply to a value. A keyword of one of them that a value breaks
// excludes the value, whatever else the schemas say. Without a schema, every value is possible.
type shape struct {
	roots []*jsonschema.Schema // the schemas of the value
	all   []*jsonschema.Schema // these, with what $ref and allOf add to them
}

func shapeOf(roots ...*jsonschema.Schema) shape {
	s := shape{roots: roots}
	var add func(*jsonschema.Schema)
	add = func(n *jsonschema.Schema) {
		if n == nil || slices.Contains(s.all, n) {
			return
		}
		s.all = append(s.all, n)
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

// maxCounted is the greatest size in a schema by which values are divided. A cell that breaks only
// a greater one stays.
const maxCounted = 256

func counted(n *int) bool { return n != nil && *n <= maxCounted }

// member returns the shape of a member, and whether the member can be there.
func (s *shape) member(name string) (member shape, possible bool) {
	var roots []*jsonschema.Schema
	for _, n := range s.all {
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
			return shape{}, false
		case isSchema:
			roots = append(roots, others)
		}
	}
	return shapeOf(roots...), true
}

func (s *shape) requires(name string) bool { return slices.Contains(s.required(), name) }

// required returns the names of members that must be there, in order.
func (s *shape) required() (names []string) {
	for _, n := range s.all {
		names = append(names, n.Required...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// element returns the shape of every element of a list.
func (s *shape) element() shape {
	var roots []*jsonschema.Schema
	for _, n := range s.all {
		if n.Items2020 != nil && len(n.PrefixItems) == 0 {
			roots = append(roots, n.Items2020)
		}
		if every, ok := n.Items.(*jsonschema.Schema); ok {
			roots = append(roots, every)
		}
	}
	return shapeOf(roots...)
}

// kindNames are the types of schemas that admit values of a kind.
var kindNames = map[kind][]string{
	null: {"null"}, boolean: {"boolean"}, number: {"number", "integer"}, text: {"string"}, list: {"array"}, object: {"object"},
}

// hasKind reports whether the types of the schemas leave room for values of a kind.
func (s *shape) hasKind(k kind) bool { return s.admits(k, maxNesting) }

// admits is hasKind with a bound on the anyOf in anyOf that it follows.
func (s *shape) admits(k kind, level int) bool {
	return !slices.ContainsFunc(s.all, func(n *jsonschema.Schema) bool {
		byType := n.Types == nil || n.Types.IsEmpty() ||
			slices.ContainsFunc(kindNames[k], func(name string) bool { return slices.Contains(n.Types.ToStrings(), name) })
		byAny := len(n.AnyOf) == 0 || level == 0 || slices.ContainsFunc(n.AnyOf, func(one *jsonschema.Schema) bool {
			part := shapeOf(one)
			return part.admits(k, level-1)
		})
		return n.Bool != nil && !*n.Bool || !byType || !byAny
	})
}

// integersOnly reports whether a number must be an integer.
func (s *shape) integersOnly() bool {
	return slices.ContainsFunc(s.all, func(n *jsonschema.Schema) bool {
		return n.Types != nil && slices.Contains(n.Types.ToStrings(), "integer") &&
			!slices.Contains(n.Types.ToStrings(), "number")
	})
}

// textKeywords returns the patterns and lengths of the schemas, and for each keyword whether it
// excludes a text.
func (s *shape) textKeywords() (excludes []func(string) bool, patterns []string, sizes []int) {
	for _, n := range s.all {
		if n.Pattern != nil {
			if _, err := compilePattern(n.Pattern.String()); err == nil {
				patterns = append(patterns, n.Pattern.String())
				excludes = append(excludes, func(x string) bool { return !n.Pattern.MatchString(x) })
			}
		}
		if counted(n.MinLength) {
			sizes = append(sizes, *n.MinLength)
			excludes = append(excludes, func(x string) bool { return utf8.RuneCountInString(x) < *n.MinLength })
		}
		if counted(n.MaxLength) {
			sizes = append(sizes, *n.MaxLength)
			excludes = append(excludes, func(x string) bool { return utf8.RuneCountInString(x) > *n.MaxLength })
		}
	}
	return excludes, patterns, sizes
}

// allowsItems reports whether the schemas allow a list of a size.
func (s *shape) allowsItems(size int) bool {
	return !slices.ContainsFunc(s.all, func(n *jsonschema.Schema) bool {
		return counted(n.MinItems) && size < *n.MinItems || counted(n.MaxItems) && size > *n.MaxItems
	})
}

// bounds returns the bounds of numbers.
func (s *shape) bounds() (numbers []*big.Rat) {
	for _, n := range s.all {
		for _, bound := range []*big.Rat{n.Minimum, n.Maximum, n.ExclusiveMinimum, n.ExclusiveMaximum} {
			if bound != nil {
				numbers = append(numbers, bound)
			}
		}
	}
	return numbers
}

// inBounds reports whether a number is within the bounds.
func (s *shape) inBounds(x *big.Rat) bool {
	return !slices.ContainsFunc(s.all, func(n *jsonschema.Schema) bool {
		return n.Minimum != nil && x.Cmp(n.Minimum) < 0 || n.Maximum != nil && x.Cmp(n.Maximum) > 0 ||
			n.ExclusiveMinimum != nil && x.Cmp(n.ExclusiveMinimum) <= 0 ||
			n.ExclusiveMaximum != nil && x.Cmp(n.ExclusiveMaximum) >= 0
	})
}

// listed returns the scalars of an enum or const, in all their forms. It is false if the schemas
// have none, or only one with a list or an object: their numbers have several forms.
func (s *shape) listed() (values []value, ok bool) {
	for _, n := range s.all {
		var listed []any
		switch {
		case n.Const != nil:
			listed = []any{*n.Const}
		case n.Enum != nil:
			listed = n.Enum.Values
		default:
			continue
		}

		values, ok = nil, true
		for _, one := range listed {
			switch v := one.(type) {
			case nil:
				values = append(values, nullValue)
			case bool:
				values = append(values, boolValue(v))
			case string:
				values = append(values, textValue(v))
			case json.Number:
				values = append(values, formsOf(v.String())...)
			default:
				ok = false
			}
		}
		if ok {
			return slices.DeleteFunc(values, func(v value) bool { return !s.hasKind(v.kind) }), true
		}
	}
	return nil, false
}

// conforms reports whether a value is valid by all that the schemas say.
func (s *shape) conforms(v *value) (valid bool) {
	defer func() {
		if recover() != nil { // the validator panics on some schemas; package schema refuses such calls
			valid = false
		}
	}()
	if v.kind == absent {
		return true
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(v.json))
	if err != nil {
		return false
	}
	for _, n := range s.roots {
		if n.Validate(document) != nil {
			return false
		}
	}
	return true
}
