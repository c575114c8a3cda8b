package lint

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/condition"
)

// Bounds of what is read of an inputSchema. What is deeper can be anything; of a larger schema nothing is known.
const (
	maxShapeDepth = 24
	maxShapeNodes = 4096
)

// shapeOf returns what a tool's arguments can be, by its inputSchema in the closed world that package schema makes of
// it. It is at least as wide as what the schema accepts: keywords that say less than the kinds and names of things are
// passed over. It is nil if nothing can be said.
func shapeOf(inputSchema []byte) *condition.Shape {
	r := &reader{root: inputSchema}
	r.dialect()
	p := r.read(inputSchema, 0)
	if p == nil || r.nodes > maxShapeNodes || p.kinds&condition.KindObject == 0 {
		return nil
	}
	p.kinds = condition.KindObject
	p.named = true // the top level is closed even if it names nothing
	return p.shape()
}

// A reader reads the subschemas of one schema.
type reader struct {
	root   jsontext.Value
	nodes  int
	old    bool     // up to draft 7, what stands beside $ref does not count
	beyond []string // keywords that the dialect does not have
}

// dialect learns from $schema what counts.
func (r *reader) dialect() {
	var name string
	json.Unmarshal(object(r.root)["$schema"], &name)
	late := []string{"dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "prefixItems"}
	switch {
	case strings.Contains(name, "draft-07"):
		r.old, r.beyond = true, late
	case strings.Contains(name, "draft-0"):
		r.old, r.beyond = true, append(late, "if", "then", "else", "const")
	case strings.Contains(name, "2019-09"):
		r.beyond = []string{"prefixItems", "dependencies"}
	default:
		r.beyond = []string{"dependencies"}
	}
}

// A part is what one subschema, and those that stand in its place, say of a value. A nil part says nothing.
type part struct {
	kinds   condition.Kinds
	members map[string]*condition.Shape
	named   bool // it names members
	more    bool // it says that there can be others
	shut    bool // it says that there cannot
	items   *condition.Shape
}

// shape closes the part as package schema does: others are let in if that is said, or if nothing is said at all.
func (p *part) shape() *condition.Shape {
	if p == nil || p.kinds == 0 {
		return nil
	}
	return &condition.Shape{Kinds: p.kinds, Members: p.members, Items: p.items,
		Open: p.more || !p.named && !p.shut}
}

type keywords map[string]jsontext.Value

// read returns what a subschema says.
func (r *reader) read(raw jsontext.Value, depth int) *part {
	r.nodes++
	if depth > maxShapeDepth || r.nodes > maxShapeNodes || raw.Kind() != '{' {
		return nil // true and false too: what false forbids need not be told
	}
	var k keywords
	if json.Unmarshal(raw, &k) != nil {
		return nil
	}
	if depth > 0 && (k["$id"].Kind() == '"' || k["id"].Kind() == '"' || k["$schema"] != nil) {
		return nil // references below it go elsewhere, or other words count
	}
	for _, word := range append([]string{"$dynamicRef", "$recursiveRef"}, r.beyond...) {
		if _, ok := k[word]; ok {
			return nil
		}
	}
	ref, refers := k["$ref"]
	if refers && r.old {
		return r.reference(ref, depth)
	}
	p := r.own(k, depth)
	if refers {
		p = both(p, r.reference(ref, depth))
	}
	for _, one := range list(k["allOf"]) {
		p = both(p, r.read(one, depth+1))
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if branches := list(k[word]); len(branches) > 0 {
			p = both(p, r.union(branches, depth))
		}
	}
	for _, word := range []string{"if", "then", "else"} {
		if raw, ok := k[word]; ok {
			one := r.perhaps(raw, depth)
			one.named = one.named && word != "if" // a condition names nothing
			p = both(p, one)
		}
	}
	for _, word := range []string{"dependentSchemas", "dependencies"} {
		for _, raw := range object(k[word]) { // in any order: what they name is put together
			if raw.Kind() == '{' {
				p = both(p, r.perhaps(raw, depth))
			}
		}
	}
	return p
}

// own returns what a subschema says itself.
func (r *reader) own(k keywords, depth int) *part {
	p := &part{kinds: kinds(k), members: map[string]*condition.Shape{}}
	for name, raw := range object(k["properties"]) { // in any order: each makes its own member
		p.members[name], p.named = r.read(raw, depth+1).shape(), true
	}
	if len(object(k["patternProperties"])) > 0 || k["const"] != nil || k["enum"] != nil {
		p.named, p.more = true, true
	}
	for _, word := range []string{"additionalProperties", "unevaluatedProperties"} {
		if raw, ok := k[word]; ok {
			p.more, p.shut = p.more || raw.Kind() != 'f', true
		}
	}
	if items, ok := k["items"]; ok && items.Kind() == '{' && k["prefixItems"] == nil {
		p.items = r.read(items, depth+1).shape()
	}
	return p
}

// reference follows a reference within the document.
func (r *reader) reference(ref jsontext.Value, depth int) *part {
	var to string
	if json.Unmarshal(ref, &to) != nil || to != "#" && !strings.HasPrefix(to, "#/") || strings.Contains(to, "%") {
		return nil
	}
	at := r.root
	for i, step := range strings.Split(to, "/")[1:] {
		of := object(at)
		if i > 0 && (of["$id"].Kind() == '"' || of["id"].Kind() == '"') {
			return nil
		}
		next, ok := of[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
		if !ok {
			return nil
		}
		at = next
	}
	return r.read(at, depth+1)
}

// union returns what one of several subschemas says.
func (r *reader) union(branches []jsontext.Value, depth int) *part {
	var all *part
	for i, raw := range branches {
		one := r.read(raw, depth+1)
		if one == nil {
			return anyKind(true)
		}
		if i == 0 {
			all = one
			continue
		}
		merged := &part{kinds: all.kinds | one.kinds, named: all.named || one.named, more: all.more || one.more,
			shut: all.shut || one.shut, members: map[string]*condition.Shape{}}
		// What only one branch names can be anything where another holds, if others are let in.
		merge(merged.members, &part{members: all.members, more: true}, &part{members: one.members, more: true})
		if all.items != nil && one.items != nil {
			merged.items = either(all.items, one.items)
		}
		all = merged
	}
	return all
}

// perhaps returns what a subschema names that need not hold.
func (r *reader) perhaps(raw jsontext.Value, depth int) *part {
	p := r.read(raw, depth+1)
	if p == nil {
		return anyKind(raw.Kind() == '{')
	}
	p.kinds, p.items = condition.KindsJSON, nil
	for name := range p.members { // in any order: all become the same
		p.members[name] = nil // it may be the other way round
	}
	return p
}

// anyKind is a part that says nothing of kinds; more if it may say anything of names.
func anyKind(more bool) *part {
	return &part{kinds: condition.KindsJSON, more: more, members: map[string]*condition.Shape{}}
}

// both returns what two parts say of one value. Where both name a member, either may be what it is.
func both(a, b *part) *part {
	switch {
	case a == nil:
		return nil
	case b == nil:
		b = anyKind(true)
	}
	p := &part{kinds: a.kinds & b.kinds, named: a.named || b.named, more: a.more || b.more, shut: a.shut || b.shut,
		members: map[string]*condition.Shape{}, items: a.items}
	if p.items == nil {
		p.items = b.items
	}
	for name, s := range a.members { // in any order: each makes its own member
		p.members[name] = s
	}
	for name, s := range b.members { // in any order: each makes its own member
		if had, ok := p.members[name]; ok {
			s = either(had, s)
		}
		p.members[name] = s
	}
	return p
}

// merge unites members of alternatives. What only one of them names can be anything if the other lets others in.
func merge(into map[string]*condition.Shape, a, b *part) {
	for name, s := range a.members { // in any order: each makes its own member
		t, ok := b.members[name]
		switch {
		case ok:
			s = either(s, t)
		case b.more:
			s = nil
		}
		into[name] = s
	}
	for name, t := range b.members { // in any order: each makes its own member
		if _, ok := a.members[name]; !ok {
			if a.more {
				t = nil
			}
			into[name] = t
		}
	}
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
	merge(s.Members, &part{members: a.Members, more: a.Kinds&condition.KindObject != 0 && a.Open},
		&part{members: b.Members, more: b.Kinds&condition.KindObject != 0 && b.Open})
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

// kinds returns the kinds that type, enum and const leave.
func kinds(k keywords) condition.Kinds {
	all := condition.KindsJSON
	if raw, ok := k["type"]; ok {
		all = 0
		words := list(raw)
		if raw.Kind() == '"' {
			words = []jsontext.Value{raw}
		}
		for _, w := range words {
			var word string
			if json.Unmarshal(w, &word) == nil {
				all |= kindNamed[word]
			}
		}
	}
	if raw, ok := k["enum"]; ok {
		var some condition.Kinds
		for _, v := range list(raw) {
			some |= kindOf(v)
		}
		all &= some
	}
	if raw, ok := k["const"]; ok {
		all &= kindOf(raw)
	}
	return all
}

var kindNamed = map[string]condition.Kinds{
	"null": condition.KindNull, "boolean": condition.KindBool, "integer": condition.KindNumber,
	"number": condition.KindNumber, "string": condition.KindText, "array": condition.KindList,
	"object": condition.KindObject,
}

// list returns the elements of a list, or none.
func list(raw jsontext.Value) (all []jsontext.Value) {
	if raw.Kind() == '[' && json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

// object returns the members of an object, or none.
func object(raw jsontext.Value) (all map[string]jsontext.Value) {
	if raw.Kind() == '{' && json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}
