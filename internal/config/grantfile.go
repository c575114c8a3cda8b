package config

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy"
	"pgfsm/policy/schema"
)

// GrantVersion is the only version of grant files.
const GrantVersion = 1

// MaxChoices bounds the values of one in.
const MaxChoices = 256

var constraintShape = &shape{form: object, cross: crossConstraint, keys: []key{
	{name: "eq", shape: &shape{form: anyJSON}, doc: "The required value."},
	{name: "in", shape: &shape{form: list, min: 1, max: MaxChoices, each: &shape{form: anyJSON}},
		doc: "The allowed values."},
	{name: "schema", shape: &shape{form: anyJSON}, doc: "The JSON Schema that the value must conform to."},
}}

// grantFile is the shape of a grant file.
var grantFile = &shape{form: object, cross: crossGrant, keys: []key{
	{name: "version", shape: &shape{form: integer, min: GrantVersion, max: GrantVersion}, required: true,
		example: number(GrantVersion), doc: "The version of this format."},
	{name: "tools", required: true, doc: "The tools that may be called, by server.",
		shape: &shape{form: table, max: policy.MaxServers, name: plainName, what: "server",
			each: &shape{form: table, max: policy.MaxGrantTools, name: toolName, what: "tool",
				each: &shape{form: object, keys: []key{
					{name: "calls", shape: &shape{form: integer, min: 1, max: policy.MaxGrantCalls},
						doc: "The number of calls that a task may make to the tool."},
					{name: "args", shape: &shape{form: table, max: policy.MaxGrantArgs, what: "argument", each: constraintShape,
						name: &shape{form: text, empty: true, lines: true, check: checkArgument}},
						doc: "Constraints on the arguments."},
				}}}}},
}}

// checkArgument judges the name of a place in arguments.
func checkArgument(s string) fault {
	if !jsontext.Pointer(pointerTo(s)).IsValid() {
		return fault{"is not a JSON pointer", "write /NAME/NAME, with ~1 for a / and ~0 for a ~ in a name"}
	}
	return fault{}
}

// pointerTo is the JSON pointer that a name in a grant means: itself if it is one, else to the top-level argument of
// that name.
func pointerTo(name string) string {
	if name == "" || name[0] == '/' {
		return name
	}
	return string(jsontext.Pointer("").AppendToken(name))
}

// crossGrant bounds the tools of all servers together.
func crossGrant(j *judge, n *node, _ string) {
	tools := 0
	for _, server := range n.fields("tools") {
		tools += len(server.value.members)
	}
	if tools > policy.MaxGrantTools {
		j.src.fault(n.get("tools").at, "tools", "", "tools names %d tools; at most %d are accepted",
			tools, policy.MaxGrantTools)
	}
}

// crossConstraint refuses a constraint that says nothing, and a schema that the gate would refuse.
func crossConstraint(j *judge, n *node, path string) {
	if n.kind == isMap && len(n.members) == 0 {
		j.src.fault(n.at, path, "write eq, in or schema", "%s says nothing", path)
	}
	if len(j.src.refused) > 0 { // there may be text that is no JSON
		return
	}
	for _, m := range n.members {
		if m.key == "schema" {
			j.asserts(m.value, join(path, "schema"))
		}
		if doc := m.schema(); doc != nil {
			if _, err := schema.CompileOpen(doc, schema.DefaultLimits()); err != nil {
				at := m.value.at
				if m.key == "schema" {
					at = m.value.pointed(err)
				}
				j.src.fault(at, join(path, m.key), "", "%s is refused: %s", join(path, m.key), err)
			}
		}
	}
}

// The keywords of JSON Schema that a grant may use, by what their values are. A misspelled one asserts nothing, and would
// widen what the grant allows.
var keywords = map[string]string{
	"$schema": "", "$id": "", "$anchor": "", "$dynamicAnchor": "", "$ref": "", "$dynamicRef": "", "$comment": "",
	"title": "", "description": "", "default": "", "examples": "", "deprecated": "", "readOnly": "", "writeOnly": "",
	"type": "", "enum": "", "const": "", "multipleOf": "", "maximum": "", "exclusiveMaximum": "", "minimum": "",
	"exclusiveMinimum": "", "maxLength": "", "minLength": "", "pattern": "", "maxItems": "", "minItems": "",
	"uniqueItems": "", "maxContains": "", "minContains": "", "maxProperties": "", "minProperties": "", "required": "",
	"dependentRequired": "",

	"$defs": "by name", "definitions": "by name", "properties": "by name", "patternProperties": "by name",
	"dependentSchemas": "by name",

	"allOf": "list", "anyOf": "list", "oneOf": "list", "prefixItems": "list",

	"not": "schema", "if": "schema", "then": "schema", "else": "schema", "items": "schema", "contains": "schema",
	"additionalProperties": "schema", "propertyNames": "schema", "unevaluatedItems": "schema",
	"unevaluatedProperties": "schema",
}

// asserts refuses keywords without effect in a grant's schema: unknown keywords, and format, which is an annotation.
func (j *judge) asserts(n *node, path string) {
	for _, m := range n.members {
		at := join(path, m.key)
		of, known := keywords[m.key]
		if !known {
			remedy := Nearest(m.key, slices.Sorted(maps.Keys(keywords)))
			if m.key == "format" {
				remedy = "write a pattern"
			}
			j.src.fault(m.at, at, remedy, "%s asserts nothing: it is not a keyword of JSON Schema 2020-12 that is asserted here", at)
		}
		switch of {
		case "schema":
			j.asserts(m.value, at)
		case "list":
			for _, item := range m.value.items {
				j.asserts(item, at)
			}
		case "by name":
			for _, named := range m.value.members {
				j.asserts(named.value, join(at, named.key))
			}
		}
	}
}

// schema is a member of a constraint as JSON Schema; nil for other members.
func (m *member) schema() jsontext.Value {
	switch {
	case m.key == "eq":
		return keyword("const", m.value)
	case m.key == "in" && m.value.kind == isList:
		return keyword("enum", m.value)
	case m.key == "schema":
		return m.value.json()
	}
	return nil
}

func keyword(name string, value *node) jsontext.Value {
	return (&node{kind: isMap, members: []member{{key: name, value: value}}}).json()
}

// ReadGrant reads a grant file: strict YAML, or strict JSON if its name ends in ".json". Servers, tools and constraints
// keep the order of the file, and the grant gets the file's base name. The error is of type [Errors].
func ReadGrant(name string, text []byte) (policy.Grant, error) {
	src, text := checkText(name, text)
	if len(src.faults) > 0 {
		return policy.Grant{}, src.err()
	}
	root := readGrant(src, text)
	if err := src.err(); err != nil {
		return policy.Grant{}, err
	}
	return grantOf(name, root), nil
}

func readGrant(src *source, text []byte) *node {
	root := readEither(src, text, "write version: 1 and the tools that may be called")
	src.judge(root, grantFile)
	return root
}

// grantOf makes a grant of what was judged.
func grantOf(name string, root *node) policy.Grant {
	g := policy.Grant{Name: filepath.Base(name)}
	for _, server := range root.fields("tools") {
		for _, tool := range server.value.members {
			to := policy.Granted{Server: server.key, Tool: tool.key}
			if tool.value.get("calls") != nil {
				calls := tool.value.integer("calls")
				to.Calls = &calls
			}
			for _, arg := range tool.value.fields("args") {
				for _, m := range arg.value.members {
					to.Args = append(to.Args, policy.Constraint{At: pointerTo(arg.key), Schema: m.schema()})
				}
			}
			g.Tools = append(g.Tools, to)
		}
	}
	return g
}

// grants reads the grant files that the configuration names, and those of one run.
func (l *loader) grants(files []string) {
	for i, n := range l.file.root.list("grants") {
		if src, text := l.named(n, "grants["+number(int64(i))+"]", l.file.resolve(n.text), ""); src != nil {
			l.grant(src, text)
		}
	}
	for _, path := range files {
		text, err := l.open(path)
		if err != nil {
			l.faults = append(l.faults, &Error{File: path, Key: "--grant", Problem: "cannot be read: " + reason(err)})
			continue
		}
		src, text := checkText(path, text)
		if err := src.err(); err != nil {
			l.faults = append(l.faults, err.(Errors)...)
			continue
		}
		l.grant(src, text)
	}
}

func (l *loader) grant(src *source, text []byte) {
	root := readGrant(src, text)
	if err := src.err(); err != nil {
		l.faults = append(l.faults, err.(Errors)...)
		return
	}
	l.out.Content.Grants = append(l.out.Content.Grants, grantOf(src.name, root))
	for _, server := range root.fields("tools") {
		l.unknownServer(src, server)
	}
}

// unknownServer warns about a name of a server that is not configured, which is often a typing mistake.
func (l *loader) unknownServer(src *source, m member) {
	servers := l.file.root.get("servers")
	if servers.member(m.key) != nil {
		return
	}
	var names []string
	for _, s := range servers.members {
		names = append(names, s.key)
	}
	hint := Nearest(m.key, names)
	if hint != "" {
		hint = "; " + hint
	}
	l.warn(src, m.at, "no server %s is configured%s", quote(m.key), hint)
}
