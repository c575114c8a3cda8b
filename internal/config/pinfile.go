package config

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// allowlist holds the content of an allowlist file, by server.
type allowlist Table[allowedTools]

// allowedTools holds the tools of a server, with their pins. Without pins, the file may have a list of tools.
type allowedTools struct {
	object bool
	tools  Table[pinned]
}

type pinned struct {
	Pin canonical.Digest `json:"pin,omitzero"`
}

// UnmarshalJSONFrom reads a list or an object of tools.
func (a *allowedTools) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if a.object = dec.PeekKind() == '{'; a.object {
		return json.UnmarshalDecode(dec, &a.tools)
	}
	var names []string
	err := json.UnmarshalDecode(dec, &names)
	for _, name := range names {
		a.tools = append(a.tools, Entry[pinned]{Name: name})
	}
	return err
}

// split returns the tools and their pins.
func (a allowlist) split() (tools []policy.Allowance, pins []policy.Pin) {
	for _, server := range a {
		allowance := policy.Allowance{Server: server.Name}
		for _, tool := range server.Value.tools {
			allowance.Tools = append(allowance.Tools, tool.Name)
			if tool.Value.Pin != "" {
				pins = append(pins, policy.Pin{Definition: tool.Value.Pin, Server: server.Name, Tool: tool.Name})
			}
		}
		tools = append(tools, allowance)
	}
	return tools, pins
}

// json writes an allowlist file. A list of tools becomes an object only if a tool in it is pinned.
func (a allowlist) json() []byte {
	out := &node{kind: isMap}
	for _, server := range a {
		tools := &node{kind: isList}
		for _, tool := range server.Value.tools {
			if server.Value.object || tool.Value.Pin != "" {
				tools.kind = isMap
			}
		}
		if server.Value.object {
			tools.kind = isMap
		}
		for _, tool := range server.Value.tools {
			value := &node{kind: isText, text: tool.Name}
			if tools.kind == isMap {
				value = &node{kind: isMap}
			}
			if pin := tool.Value.Pin; pin != "" {
				value.members = []member{{key: "pin", value: &node{kind: isText, text: string(pin)}}}
			}
			tools.members = append(tools.members, member{key: tool.Name, value: value})
		}
		out.members = append(out.members, member{key: server.Name, value: tools})
	}
	text := out.json()
	if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
		panic("config: an allowlist does not indent: " + err.Error())
	}
	return append(text, '\n')
}

// readPins reads and checks the text of an allowlist file.
func readPins(name string, text []byte) (*file, allowlist, error) {
	f, err := read(name, text, allowlistSchema(), ordinary, "")
	if err != nil {
		return nil, nil, err
	}
	var servers Table[allowedTools]
	decode(f.root, &servers)
	return f, allowlist(servers), nil
}

// ReadPins reads the text of an allowlist file: its tools, in order, and their pins. name is the file's name in messages. The error is of type [Errors].
func ReadPins(name string, text []byte) ([]policy.Allowance, []policy.Pin, error) {
	_, servers, err := readPins(name, text)
	tools, pins := servers.split()
	return tools, pins, err
}

// EditPins returns the text of an allowlist file with exactly these pins, and the same servers and tools in the same order. It returns an
// error for a pin of a tool that the file does not name, a pin that appears twice, a pin that is not a digest, and a text that is not an
// allowlist.
func EditPins(text []byte, pins []policy.Pin) ([]byte, error) {
	_, servers, err := readPins("the allowlist", text)
	if err != nil {
		return nil, err
	}
	for _, server := range servers {
		for i := range server.Value.tools {
			server.Value.tools[i].Value.Pin = ""
		}
	}
	for _, p := range pins {
		to := servers.pin(p.Server, p.Tool)
		switch {
		case to == nil:
			return nil, fmt.Errorf("%s %s is not on the allowlist, so it cannot be pinned", quote(p.Server), quote(p.Tool))
		case p.Definition == "":
			return nil, fmt.Errorf("the pin of %s %s is empty", quote(p.Server), quote(p.Tool))
		case to.Pin != "":
			return nil, fmt.Errorf("the pin of %s %s appears twice", quote(p.Server), quote(p.Tool))
		}
		to.Pin = p.Definition
	}
	return servers.checkedText()
}

// pin returns the pin of a tool; nil if the tool is not on the list.
func (a allowlist) pin(server, tool string) *pinned {
	i := Table[allowedTools](a).index(server)
	if i < 0 {
		return nil
	}
	tools := a[i].Value.tools
	if j := tools.index(tool); j >= 0 {
		return &tools[j].Value
	}
	return nil
}

// AddTools returns the text of an allowlist file with further tools of a server, after the tools that the file already names.
func AddTools(text []byte, server string, tools []string) ([]byte, error) {
	_, servers, err := readPins("the allowlist", text)
	if err != nil {
		return nil, err
	}
	i := Table[allowedTools](servers).index(server)
	if i < 0 {
		i = len(servers)
		servers = append(servers, Entry[allowedTools]{Name: server, Value: allowedTools{object: true}})
	}
	listed := &servers[i].Value
	for _, tool := range tools {
		if !slices.Contains(listed.tools.names(), tool) {
			listed.tools = append(listed.tools, Entry[pinned]{Name: tool})
		}
	}
	return servers.checkedText()
}

// checkedText returns the text of an allowlist file, after reading it back as a check.
func (a allowlist) checkedText() ([]byte, error) {
	text := a.json()
	if _, _, err := readPins("the new allowlist", text); err != nil {
		return nil, err
	}
	return text, nil
}
