package config

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// allowlist holds the content of an allowlist file, by server.
type allowlist = Table[allowedTools]

// allowedTools holds the tools of a server, with their pins.
type allowedTools Table[pinned]

type pinned struct {
	Pin canonical.Digest `json:"pin,omitzero"`
}

// UnmarshalJSONFrom reads an object of tools or, without pins, a list of their names.
func (a *allowedTools) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '{' {
		return json.UnmarshalDecode(dec, (*Table[pinned])(a))
	}
	var names []string
	err := json.UnmarshalDecode(dec, &names)
	for _, name := range names {
		*a = append(*a, Entry[pinned]{Name: name})
	}
	return err
}

// MarshalJSONTo writes an object of tools.
func (a allowedTools) MarshalJSONTo(enc *jsontext.Encoder) error {
	return json.MarshalEncode(enc, Table[pinned](a))
}

// split returns the tools and their pins.
func split(a allowlist) (tools []policy.Allowance, pins []policy.Pin) {
	for _, server := range a {
		allowance := policy.Allowance{Server: server.Name}
		for _, tool := range server.Value {
			allowance.Tools = append(allowance.Tools, tool.Name)
			if tool.Value.Pin != "" {
				pins = append(pins, policy.Pin{Definition: tool.Value.Pin, Server: server.Name, Tool: tool.Name})
			}
		}
		tools = append(tools, allowance)
	}
	return tools, pins
}

// readPins reads and checks the text of an allowlist file.
func readPins(name string, text []byte) (*file, allowlist, error) {
	f, err := read(name, text, allowlistSchema(), MaxFileBytes, "")
	if err != nil {
		return nil, nil, err
	}
	var servers allowlist
	decode(f.root, &servers)
	return f, servers, nil
}

// ReadPins reads the text of an allowlist file: its tools, in order, and their pins. name is the file's name in messages. The error is of type [Errors].
func ReadPins(name string, text []byte) ([]policy.Allowance, []policy.Pin, error) {
	_, servers, err := readPins(name, text)
	tools, pins := split(servers)
	return tools, pins, err
}

// EditPins returns the text of an allowlist file with exactly these pins, and the same servers and tools in the same order: each server's
// tools are an object then. It returns an error for a pin of a tool that the file does not name.
func EditPins(text []byte, pins []policy.Pin) ([]byte, error) {
	_, servers, err := readPins("the allowlist", text)
	if err != nil {
		return nil, err
	}
	for _, server := range servers {
		for i := range server.Value {
			server.Value[i].Value.Pin = ""
		}
	}
	for _, p := range pins {
		to := pinOf(servers, p.Server, p.Tool)
		if to == nil {
			return nil, fmt.Errorf("%s %s is not on the allowlist, so it cannot be pinned", quote(p.Server), quote(p.Tool))
		}
		to.Pin = p.Definition
	}
	return checkedText(servers)
}

// pinOf returns the pin of a tool; nil if the tool is not on the list.
func pinOf(a allowlist, server, tool string) *pinned {
	i := a.index(server)
	if i < 0 {
		return nil
	}
	tools := Table[pinned](a[i].Value)
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
	i := servers.index(server)
	if i < 0 {
		i = len(servers)
		servers = append(servers, Entry[allowedTools]{Name: server})
	}
	for _, tool := range tools {
		if pinOf(servers, server, tool) == nil {
			servers[i].Value = append(servers[i].Value, Entry[pinned]{Name: tool})
		}
	}
	return checkedText(servers)
}

// checkedText returns the text of an allowlist file, after reading it back as a check.
func checkedText(servers allowlist) ([]byte, error) {
	text, err := json.Marshal(servers, jsontext.WithIndent("  "))
	if err != nil {
		return nil, err
	}
	if _, _, err := readPins("the new allowlist", text); err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}
