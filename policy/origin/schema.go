package origin

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// maxSchemas bounds how many subschemas are read for one leaf. With more, nothing is known about the leaf.
const maxSchemas = 64

// A schemaNode is what we read of a JSON Schema. It comes from the server, so it exempts no target.
type schemaNode struct {
	Ref        string                    `json:"$ref"`
	Properties map[string]jsontext.Value `json:"properties"`
	Items      jsontext.Value            `json:"items"`
	AllOf      []jsontext.Value          `json:"allOf"`
	AnyOf      []jsontext.Value          `json:"anyOf"`
	OneOf      []jsontext.Value          `json:"oneOf"`
	Enum       []jsontext.Value          `json:"enum"`
	Const      jsontext.Value            `json:"const"`
	Type       jsontext.Value            `json:"type"`
	Format     string                    `json:"format"`
}

// An Argument is a scalar that a schema of arguments declares.
type Argument struct {
	Path       []string // * stands for any index
	Enum, Bool bool
	Format     string
}

// Words returns the words of the argument's name, in lower case.
func (a *Argument) Words() []string {
	return wordsOf(slices.DeleteFunc(slices.Clone(a.Path), func(name string) bool { return name == "*" }))
}

// Arguments returns the scalars that a schema declares, in order, to [MaxDepth]: at most [MaxLeaves].
func Arguments(schema jsontext.Value) (arguments []Argument) {
	work := -MaxLeaves // more subschemas are read than for one leaf
	var add func(path []string, at []schemaNode)
	add = func(path []string, at []schemaNode) {
		leaf, members := Argument{Path: slices.Clone(path)}, map[string][]schemaNode{}
		for _, s := range at {
			for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
				members[name] = append(members[name], expand(schema, s.Properties[name], &work)...)
			}
			if s.Items != nil {
				members["*"] = append(members["*"], expand(schema, s.Items, &work)...)
			}
			leaf.Enum = leaf.Enum || len(s.Enum) > 0
			leaf.Bool = leaf.Bool || bytes.Contains(s.Type, []byte(`"boolean"`))
			leaf.Format = cmp.Or(leaf.Format, s.Format)
		}
		if len(members) == 0 || len(path) == MaxDepth {
			if len(path) > 0 && len(arguments) < MaxLeaves {
				arguments = append(arguments, leaf)
			}
			return
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			add(append(path, name), members[name])
		}
	}
	add(nil, expand(schema, schema, &work))
	return arguments
}

// isEnumMember reports whether the schema of path has an enum with node as a member.
func isEnumMember(schema jsontext.Value, path []string, node jsontext.Value) bool {
	if !bytes.Contains(schema, []byte(`"enum"`)) && !bytes.Contains(schema, []byte(`"const"`)) {
		return false
	}
	for _, s := range schemasAt(schema, path) {
		if slices.ContainsFunc(append(s.Enum, s.Const), func(member jsontext.Value) bool {
			c, err := canonical.JSON(member)
			return err == nil && bytes.Equal(c, node)
		}) {
			return true
		}
	}
	return false
}

// isDeclared reports whether the schema of an object declares the member at path.
func isDeclared(schema jsontext.Value, path []string) bool {
	last := len(path) - 1
	return slices.ContainsFunc(schemasAt(schema, path[:last]), func(s schemaNode) bool {
		_, ok := s.Properties[path[last]]
		return ok
	})
}

// schemasAt returns the subschemas that describe the value at path.
func schemasAt(schema jsontext.Value, path []string) []schemaNode {
	work := 0
	at := expand(schema, schema, &work)
	for _, segment := range path {
		var next []schemaNode
		for _, s := range at {
			if child, ok := s.Properties[segment]; ok {
				next = append(next, expand(schema, child, &work)...)
			}
			if s.Items != nil && strings.Trim(segment, "0123456789") == "" {
				next = append(next, expand(schema, s.Items, &work)...)
			}
		}
		at = next
	}
	if work > maxSchemas {
		return nil
	}
	return at
}

// expand reads a schema with those that it refers to or combines.
func expand(root, schema jsontext.Value, work *int) []schemaNode {
	var s schemaNode
	if *work++; *work > maxSchemas || json.Unmarshal(schema, &s) != nil {
		return nil
	}
	nodes := []schemaNode{s}
	for _, part := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf) {
		nodes = append(nodes, expand(root, part, work)...)
	}
	if pointer, ok := strings.CutPrefix(s.Ref, "#"); ok {
		if target := resolvePointer(root, jsontext.Pointer(pointer)); target != nil {
			nodes = append(nodes, expand(root, target, work)...)
		}
	}
	return nodes
}

// resolvePointer returns what a JSON pointer points to, or nil.
func resolvePointer(doc jsontext.Value, pointer jsontext.Pointer) jsontext.Value {
	for segment := range pointer.Tokens() {
		var found jsontext.Value
		if !isContainer(doc) || eachChild(doc, func(name string, child jsontext.Value) error {
			if name == segment {
				found = child
			}
			return nil
		}) != nil || found == nil {
			return nil
		}
		doc = found
	}
	return doc
}
