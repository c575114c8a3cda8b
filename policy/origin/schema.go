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

// A schemaReader reads the schema of a call's arguments, each part once.
type schemaReader struct {
	root  jsontext.Value
	parts map[string]subschemas // by the pointer of the value that they describe
}

type subschemas struct {
	nodes []schemaNode
	work  int // how many subschemas were read for them
}

// isEnumMember reports whether the schema of path has an enum with node as a member.
func (r *schemaReader) isEnumMember(path []string, node jsontext.Value) bool {
	if !bytes.Contains(r.root, []byte(`"enum"`)) && !bytes.Contains(r.root, []byte(`"const"`)) {
		return false
	}
	for _, s := range r.schemasAt(path) {
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
func (r *schemaReader) isDeclared(path []string) bool {
	last := len(path) - 1
	return slices.ContainsFunc(r.schemasAt(path[:last]), func(s schemaNode) bool {
		_, ok := s.Properties[path[last]]
		return ok
	})
}

// schemasAt returns the subschemas that describe the value at path.
func (r *schemaReader) schemasAt(path []string) []schemaNode {
	if s := r.read(path); s.work <= maxSchemas {
		return s.nodes
	}
	return nil
}

func (r *schemaReader) read(path []string) (s subschemas) {
	key := pointerOf(path)
	if known, ok := r.parts[key]; ok {
		return known
	}
	if last := len(path) - 1; last < 0 {
		r.parts = map[string]subschemas{}
		s.nodes = expand(r.root, r.root, &s.work)
	} else {
		above := r.read(path[:last])
		s.work = above.work
		for _, node := range above.nodes {
			if child, ok := node.Properties[path[last]]; ok {
				s.nodes = append(s.nodes, expand(r.root, child, &s.work)...)
			}
			if node.Items != nil && strings.Trim(path[last], "0123456789") == "" {
				s.nodes = append(s.nodes, expand(r.root, node.Items, &s.work)...)
			}
		}
	}
	r.parts[key] = s
	return s
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
func resolvePointer(doc jsontext.Value, pointer jsontext.Pointer) (found jsontext.Value) {
	segments := splitPointer(string(pointer))
	_ = eachNode(doc, func(path []string, _ bool, node jsontext.Value) bool {
		if len(path) > len(segments) || !slices.Equal(path, segments[:len(path)]) {
			return false
		}
		if len(path) == len(segments) {
			found = firstValue(node)
		}
		return found == nil
	})
	return found
}
