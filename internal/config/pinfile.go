package config

import (
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

// splitPins returns the tools and their pins.
func splitPins(a allowlist) (tools []policy.Allowance, pins []policy.Pin) {
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
	f, err := readJudged(name, text, allowlistSchema(), MaxFileBytes, "")
	if err != nil {
		return nil, nil, err
	}
	var servers allowlist
	decode(f.root, &servers)
	return f, servers, nil
}

// ReadPins reads the text of an allowlist file: its tools, in order, and their pins. name is the
// file's name in messages. The error is of type [Errors].
func ReadPins(name string, text []byte) ([]policy.Allowance, []policy.Pin, error) {
	_, servers, err := readPins(name, text)
	tools, pins := splitPins(servers)
	return tools, pins, err
}

// WritePins returns the text of an allowlist file with these tools and their pins, after reading it
// back as a check.
func WritePins(allowed []policy.Allowance, pins []policy.Pin) ([]byte, error) {
	servers := allowlist{}
	for _, a := range allowed {
		server := Entry[allowedTools]{Name: a.Server}
		for _, tool := range a.Tools {
			server.Value = append(server.Value, Entry[pinned]{tool, pinned{policy.PinOf(pins, a.Server, tool)}})
		}
		servers = append(servers, server)
	}
	text, err := json.Marshal(servers, jsontext.WithIndent("  "))
	if err != nil {
		return nil, err
	}
	if _, _, err := readPins("the new allowlist", text); err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}
