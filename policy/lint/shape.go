package lint

import (
	"cmp"
	"maps"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"pgfsm/policy/condition"
	"pgfsm/policy/schema"
)

// Bounds for reading an inputSchema. Deeper values can be anything; a larger schema is unknown.
const (
	maxShapeDepth = 24
	maxShapeNodes = 4096
)

// shapeOf returns the shape of a tool's arguments, by its inputSchema in the closed world; nil if it is unknown. The shape accepts at least what the schema
// accepts: shapeOf ignores all keywords except those for kinds and names.
func shapeOf(s *schema.Schema) *condition.Shape {
	r := &shapeReader{}
	p := r.read(s.Root(), 0)
	if p == nil || r.nodes > maxShapeNodes || p.kinds&condition.KindObject == 0 {
		return nil
	}
	p.kinds = condition.KindObject
	return p.shape()
}

// A shapeReader counts the subschemas that it has read.
type shapeReader struct{ nodes int }

// A part is the information about a value in a subschema and the subschemas of the same place. A nil part has none.
type part struct {
	kinds   condition.Kinds
	members map[string]*condition.Shape
	more    bool // it allows other members
	shut    bool // it does not, unless more
	items   *condition.Shape
}

// anything is a part that allows every value.
func anything(more bool) *part {
	return &part{kinds: condition.KindsJSON, more: more, members: map[string]*condition.Shape{}}
}

func (p *part) shape() *condition.Shape {
	if p == nil || p.kinds == 0 {
		return nil
	}
	return &condition.Shape{Kinds: p.kinds, Members: p.members, Items: p.items, Open: p.more || !p.shut}
}

func (r *shapeReader) read(n *jsonschema.Schema, depth int) *part {
	r.nodes++
	if n == nil || n.Bool != nil || n.RecursiveRef != nil || n.DynamicRef != nil || depth > maxShapeDepth || r.nodes > maxShapeNodes {
		return nil
	}
	p := r.own(n, depth)
	if n.Ref != nil {
		p = both(p, r.read(n.Ref, depth+1))
	}
	for _, one := range n.AllOf {
		p = both(p, r.read(one, depth+1))
	}
	for _, branches := range [][]*jsonschema.Schema{n.AnyOf, n.OneOf} {
		if len(branches) > 0 {
			p = both(p, r.union(branches, depth+1))
		}
	}
	if n.If != nil || len(n.DependentSchemas)+len(n.Dependencies) > 0 {
		p.more = true // what these name counts as named
	}
	return p
}

// own returns the part of a subschema itself.
func (r *shapeReader) own(n *jsonschema.Schema, depth int) *part {
	p := anything(len(n.PatternProperties) > 0)
	if n.Types != nil {
		p.kinds = 0
		for _, name := range n.Types.ToStrings() {
			p.kinds |= kindNamed[name]
		}
	}
	if n.Enum != nil {
		p.kinds &= kindsOf(n.Enum.Values...)
	}
	if n.Const != nil {
		p.kinds &= kindsOf(*n.Const)
	}
	for name, member := range n.Properties { // in any order: each makes its own member
		p.members[name] = r.read(member, depth+1).shape()
	}
	others := []any{n.AdditionalProperties}
	if n.UnevaluatedProperties != nil {
		others = append(others, n.UnevaluatedProperties)
	}
	for _, other := range others {
		one, _ := other.(*jsonschema.Schema)
		none := other == false || one != nil && one.Bool != nil && !*one.Bool
		p.shut, p.more = p.shut || none, p.more || other != nil && !none
	}
	items := n.Items2020
	if items == nil {
		items, _ = n.Items.(*jsonschema.Schema)
	}
	if len(n.PrefixItems) == 0 && items != nil {
		p.items = r.read(items, depth+1).shape()
	}
	return p
}

// union returns the part of a value that conforms to one of several subschemas.
func (r *shapeReader) union(branches []*jsonschema.Schema, depth int) *part {
	var all *condition.Shape
	more := false
	for i, n := range branches {
		p := r.read(n, depth)
		if p.shape() == nil {
			return anything(true)
		}
		if more = more || p.more; i == 0 {
			all = p.shape()
		} else {
			all = either(all, p.shape())
		}
	}
	return &part{kinds: all.Kinds, members: all.Members, items: all.Items, more: more}
}

// both returns the part of a value that conforms to two parts. If both name a member, its shape is either of the two.
func both(a, b *part) *part {
	switch {
	case a == nil:
		return nil
	case b == nil:
		b = anything(true)
	}
	p := &part{kinds: a.kinds & b.kinds, more: a.more || b.more, shut: a.shut || b.shut, members: maps.Clone(a.members),
		items: cmp.Or(a.items, b.items)}
	for name, s := range b.members { // in any order: each makes its own member
		if had, ok := p.members[name]; ok {
			s = either(had, s)
		}
		p.members[name] = s
	}
	return p
}

// either returns the shape of a value that has one of two.
func either(a, b *condition.Shape) *condition.Shape {
	if a == nil || b == nil {
		return nil
	}
	if a == b {
		return a
	}
	s := &condition.Shape{Kinds: a.Kinds | b.Kinds, Open: a.Open || b.Open, Members: map[string]*condition.Shape{}}
	for _, name := range append(a.Names(), b.Names()...) {
		x, inA := a.Member(name)
		y, inB := b.Member(name)
		switch {
		case inA && inB:
			s.Members[name] = either(x, y)
		case inA:
			s.Members[name] = x
		default:
			s.Members[name] = y
		}
	}
	switch {
	case a.Kinds&condition.KindList == 0:
		s.Items = b.Items
	case b.Kinds&condition.KindList == 0:
		s.Items = a.Items
	default:
		s.Items = either(a.Items, b.Items)
	}
	return s
}

var kindNamed = map[string]condition.Kinds{
	"null": condition.KindNull, "boolean": condition.KindBool, "integer": condition.KindNumber, "number": condition.KindNumber,
	"string": condition.KindText, "array": condition.KindList, "object": condition.KindObject,
}

// kindsOf returns the kinds of values as the schema's compiler holds them.
func kindsOf(values ...any) (all condition.Kinds) {
	for _, v := range values {
		switch v.(type) {
		case nil:
			all |= condition.KindNull
		case bool:
			all |= condition.KindBool
		case string:
			all |= condition.KindText
		case []any:
			all |= condition.KindList
		case map[string]any:
			all |= condition.KindObject
		default:
			all |= condition.KindNumber
		}
	}
	return all
}
