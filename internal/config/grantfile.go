package config

import (
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy"
	"pgfsm/policy/schema"
)

// GrantVersion is the only version of grant files.
const GrantVersion = 1

// pointerTo returns the JSON pointer that a name in a grant means: a pointer means itself, any
// other name the top-level argument of that name.
func pointerTo(name string) string {
	if name == "" || name[0] == '/' {
		return name
	}
	return string(jsontext.Pointer("").AppendToken(name))
}

// readConstraint returns a member of a constraint as JSON Schema, and notes a fault if the gate
// would refuse it.
func (f *file) readConstraint(m member, p path) jsontext.Value {
	doc := m.value
	switch m.key {
	case "eq":
		doc = &node{kind: isMap, members: []member{{key: "const", value: m.value}}}
	case "in":
		doc = &node{kind: isMap, members: []member{{key: "enum", value: m.value}}}
	}
	text := canonicalJSON(doc.json())
	if _, err := schema.CompileOpen(text, schema.DefaultLimits()); err != nil {
		faulty := m.value.at
		if m.key == "schema" {
			faulty = m.value.refusedPlace(err)
		}
		f.addFaultAt(faulty, p.String(), schemaRemedy(err), "%s is refused: %s", p, err)
	}
	return text
}

// ReadGrant reads a grant file: strict YAML, or strict JSON if its name ends in ".json". Servers,
// tools and constraints keep the order of the file, and the grant gets the file's base name. The
// error is of type [Errors].
func ReadGrant(name string, text []byte) (policy.Grant, error) {
	g, _, err := readGrant(name, text)
	return g, err
}

func readGrant(name string, text []byte) (policy.Grant, *file, error) {
	g := policy.Grant{Name: filepath.Base(name)}
	f, err := readJudged(name, text, grantSchema(), MaxFileBytes, "write version: 1 and the tools that may be called")
	if err != nil {
		return g, nil, err
	}

	var from struct {
		Tools Table[Table[struct{ Calls *int }]]
	}
	decode(f.root, &from)

	for _, server := range from.Tools {
		for _, tool := range server.Value {
			granted := policy.Granted{Server: server.Name, Tool: tool.Name, Calls: tool.Value.Calls}
			argsPath := path{"tools", server.Name, tool.Name, "args"}
			if args := f.get(argsPath); args != nil {
				for _, arg := range args.members {
					for _, m := range arg.value.members {
						schema := f.readConstraint(m, argsPath.child(arg.key, m.key))
						granted.Args = append(granted.Args, policy.Constraint{At: pointerTo(arg.key), Schema: schema})
					}
				}
			}
			g.Tools = append(g.Tools, granted)
		}
	}

	if len(g.Tools) > policy.MaxGrantTools {
		f.addFault(path{"tools"}, "", "tools names %d tools; at most %d are accepted", len(g.Tools),
			policy.MaxGrantTools)
	}

	return g, f, f.err()
}

// addGrants reads the grant files that the configuration names, and the files for one run.
func (l *loader) addGrants(files []string) {
	for i, name := range l.Grants {
		name = l.resolvePath(name)
		if text, ok := l.readNamed(path{"grants"}.item(i), name, ""); ok {
			l.addGrant(name, text)
		}
	}
	for _, name := range files {
		text, err := l.open(name)
		if err != nil {
			l.others = append(l.others, &Error{
				File:    name,
				Key:     "--grant",
				Problem: "cannot be read: " + reasonOf(err),
				Remedy:  "correct the path, or create the file",
			})
			continue
		}
		l.addGrant(name, text)
	}
}

func (l *loader) addGrant(name string, text []byte) {
	g, f, err := readGrant(name, text)
	if l.addFaults(err) {
		return
	}
	l.out.Content.Grants = append(l.out.Content.Grants, g)
	for _, server := range f.root.membersOf("tools") {
		l.warnUnknownServer(f, server.at, server.key)
	}
}
