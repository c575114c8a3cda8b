package config

import (
	"embed"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/schema"
)

// The tools of coding agents, one file for each: a result of tools/list.
//
//go:embed tools/*.json
var toolFiles embed.FS

// builtinTools selects the embedded file of the agent that the server is named after.
const builtinTools = "builtin"

// toolsRemedy is the remedy for a file that is no list of tools.
const toolsRemedy = `the file is JSON, {"tools": [{"name": …, "description": …, "inputSchema": {"type": "object", …}}]}`

// Clients returns the names of the coding agents whose tools are embedded.
func Clients() (names []string) {
	entries, err := toolFiles.ReadDir("tools")
	if err != nil {
		panic("config: the embedded tools cannot be read: " + err.Error())
	}
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	return names
}

// readClientTools reads the tools of a client, and returns nil if they cannot be used. The server's
// name selects the file if value is [builtinTools].
func (l *loader) readClientTools(at path, server, value string) jsontext.Value {
	name := server + ".json"
	var text []byte
	switch names := Clients(); {
	case value != builtinTools:
		var ok bool
		name = l.resolvePath(value)
		if text, ok = l.readNamed(at, name, ""); !ok {
			return nil
		}
	case !slices.Contains(names, server):
		l.addFault(at, "give the server one of these names, or write the path of a file",
			"%s is builtin, and no agent %s is built in; built in are %s", at, quote(server), strings.Join(names, ", "))
		return nil
	default:
		text, _ = toolFiles.ReadFile("tools/" + name) // Clients has the name from there
	}

	f, text := openFile(name, text, MaxFileBytes)
	if len(f.faults) == 0 {
		f.root = f.readJSON(text)
	}
	if len(f.faults) == 0 {
		f.checkTools()
	}
	if l.addFaults(f.err()) {
		return nil
	}
	return canonicalJSON(text)
}

// checkTools refuses a file that is no list of tools. Unlike an MCP server's list, it is the
// operator's own: a tool that could not be called is a mistake.
func (f *file) checkTools() {
	list := f.root.member("tools")
	if f.root.kind != isMap || list == nil || list.value.kind != isList || len(list.value.members) == 0 {
		f.addFaultAt(f.root.at, "tools", toolsRemedy, "the file has no list of tools")
		return
	}
	for i, tool := range list.value.members {
		p := path{"tools"}.item(i)
		input := tool.value.get("inputSchema")
		switch {
		case tool.value.get("name") == nil || tool.value.get("name").kind != isText || tool.value.textOf("name") == "":
			f.addFaultAt(tool.value.at, p.String(), toolsRemedy, "%s has no name", p)
		case input.textOf("type") != "object":
			f.addFaultAt(tool.value.at, p.String(), toolsRemedy, `%s has no inputSchema of "type": "object"`, p)
		default:
			if _, err := schema.Compile(input.json(), schema.DefaultLimits()); err != nil {
				f.addFaultAt(input.refusedPlace(err), p.child("inputSchema").String(), schemaRemedy(err), "%s", err)
			}
		}
	}
	if len(f.faults) == 0 {
		f.checkUnique(path{"tools"}, "tool", "name")
	}
}
