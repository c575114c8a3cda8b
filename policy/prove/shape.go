package prove

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"pgfsm/policy/schema"
)

// A shape holds the schemas that all apply to a value.
type shape struct{ schema.Shape }

func shapeOf(root *jsonschema.Schema) shape { return shape{schema.ShapeOf(root)} }

// maxCounted is the greatest size in a schema by which values are divided. A cell that breaks only
// a greater one stays.
const maxCounted = 256

func counted(n *int) bool { return n != nil && *n <= maxCounted }

// member returns the shape of a member, and whether the member can be there.
func (s *shape) member(name string) (shape, bool) {
	member, possible := s.Member(name)
	return shape{member}, possible
}

func (s *shape) requires(name string) bool { return slices.Contains(s.Required(), name) }

// kindNames are the types of schemas that admit values of a kind.
var kindNames = map[kind]string{
	null: "null", boolean: "boolean", number: "number", text: "string", list: "array", object: "object",
}

// hasKind reports whether the schemas leave room for values of a kind.
func (s *shape) hasKind(k kind) bool { return s.Admits(kindNames[k]) }

// integersOnly reports whether a number must be an integer.
func (s *shape) integersOnly() bool {
	return slices.ContainsFunc(s.All, func(n *jsonschema.Schema) bool {
		return n.Types != nil && slices.Contains(n.Types.ToStrings(), "integer") &&
			!slices.Contains(n.Types.ToStrings(), "number")
	})
}

// textKeywords returns the patterns and lengths of the schemas, and for each keyword whether it
// excludes a text.
func (s *shape) textKeywords() (excludes []func(string) bool, patterns []string, sizes []int) {
	for _, n := range s.All {
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
	return !slices.ContainsFunc(s.All, func(n *jsonschema.Schema) bool {
		return counted(n.MinItems) && size < *n.MinItems || counted(n.MaxItems) && size > *n.MaxItems
	})
}

// bounds returns the bounds of numbers.
func (s *shape) bounds() (numbers []*big.Rat) {
	for _, n := range s.All {
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
	return !slices.ContainsFunc(s.All, func(n *jsonschema.Schema) bool {
		return n.Minimum != nil && x.Cmp(n.Minimum) < 0 || n.Maximum != nil && x.Cmp(n.Maximum) > 0 ||
			n.ExclusiveMinimum != nil && x.Cmp(n.ExclusiveMinimum) <= 0 ||
			n.ExclusiveMaximum != nil && x.Cmp(n.ExclusiveMaximum) >= 0
	})
}

// listed returns the scalars of an enum or const, in all their forms. It is false if the schemas
// have none, or only one with a list or an object: their numbers have several forms.
func (s *shape) listed() (values []value, ok bool) {
	for _, n := range s.All {
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
	for _, n := range s.Roots {
		if n.Validate(document) != nil {
			return false
		}
	}
	return true
}
