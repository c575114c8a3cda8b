package config

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// ReadPins reads the text of an allowlist file: its tools, in order, and their pins. name is the file's name in messages. The error is of type [Errors].
func ReadPins(name string, text []byte) ([]policy.Allowance, []policy.Pin, error) {
	root, err := readPins(name, text)
	if err != nil {
		return nil, nil, err
	}
	tools, pins := root.allowlist()
	return tools, pins, nil
}

// allowlist returns what a judged allowlist says.
func (n *node) allowlist() (tools []policy.Allowance, pins []policy.Pin) {
	for _, server := range n.members {
		a := policy.Allowance{Server: server.key}
		for _, tool := range server.value.allowed() {
			a.Tools = append(a.Tools, tool.key)
			if pin := tool.value.str("pin"); pin != "" {
				pins = append(pins, policy.Pin{Definition: canonical.Digest(pin), Server: server.key, Tool: tool.key})
			}
		}
		tools = append(tools, a)
	}
	return tools, pins
}

// EditPins returns the text of an allowlist file with exactly these pins and the same servers and tools in the same
// order. A list of tools becomes an object only where one of them is pinned. A pin of a tool that the file does not
// name, one that stands twice, and one that is no digest are errors, and so is a text that is no allowlist.
func EditPins(text []byte, pins []policy.Pin) ([]byte, error) {
	root, err := readPins("the allowlist", text)
	if err != nil {
		return nil, err
	}
	return writePins(root, pins)
}

// AddTools returns the text of an allowlist file with further tools of a server, behind those that it names already.
func AddTools(text []byte, server string, tools []string) ([]byte, error) {
	root, err := readPins("the allowlist", text)
	if err != nil {
		return nil, err
	}
	if root.member(server) == nil {
		root.members = append(root.members, member{key: server, value: &node{kind: isMap}})
	}
	listed := root.get(server)
	for _, tool := range tools {
		switch {
		case slices.ContainsFunc(listed.allowed(), func(m member) bool { return m.key == tool }):
		case listed.kind == isMap:
			listed.members = append(listed.members, member{key: tool, value: &node{kind: isMap}})
		default:
			listed.items = append(listed.items, &node{kind: isText, text: tool})
		}
	}
	_, pins := root.allowlist()
	return writePins(root, pins)
}

// writePins writes an allowlist with exactly these pins.
func writePins(root *node, pins []policy.Pin) ([]byte, error) {
	wanted := make(map[[2]string]policy.Pin, len(pins))
	for _, p := range pins {
		at := [2]string{p.Server, p.Tool}
		if _, twice := wanted[at]; twice {
			return nil, fmt.Errorf("the pin of %s %s stands twice", quote(p.Server), quote(p.Tool))
		}
		wanted[at] = p
	}
	var b bytes.Buffer
	w := pinWriter{jsontext.NewEncoder(&b, jsontext.WithIndent("  ")), wanted}
	w.file(root)
	for _, p := range pins {
		if _, left := wanted[[2]string{p.Server, p.Tool}]; left {
			return nil, fmt.Errorf("%s %s is not on the allowlist, so it cannot be pinned", quote(p.Server), quote(p.Tool))
		}
	}
	if _, err := readPins("the new allowlist", b.Bytes()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// readPins reads and judges the text of an allowlist file.
func readPins(name string, text []byte) (*node, error) {
	src, text := checkText(name, text)
	if len(src.faults) > 0 {
		return nil, src.err()
	}
	root := readJSON(src, text)
	src.judge(root, allowlist)
	return root, src.err()
}

// allowed are the tools of one server, whichever form they are written in: a name in a list has no value.
func (n *node) allowed() []member {
	tools := n.members
	for _, item := range n.items {
		tools = append(tools, member{item.text, item.at, nil})
	}
	return tools
}

// pinWriter writes an allowlist file anew and takes what it has written out of the pins.
type pinWriter struct {
	enc  *jsontext.Encoder
	pins map[[2]string]policy.Pin
}

func (w pinWriter) file(root *node) {
	w.token(jsontext.BeginObject)
	for _, server := range root.members {
		w.token(jsontext.String(server.key))
		w.server(server)
	}
	w.token(jsontext.EndObject)
}

func (w pinWriter) server(server member) {
	tools, object := server.value.allowed(), server.value.kind == isMap
	for _, tool := range tools {
		_, pinned := w.pins[[2]string{server.key, tool.key}]
		object = object || pinned
	}
	if !object {
		w.token(jsontext.BeginArray)
		for _, tool := range tools {
			w.token(jsontext.String(tool.key))
		}
		w.token(jsontext.EndArray)
		return
	}
	w.token(jsontext.BeginObject)
	for _, tool := range tools {
		at := [2]string{server.key, tool.key}
		w.token(jsontext.String(tool.key))
		w.token(jsontext.BeginObject)
		if pin, ok := w.pins[at]; ok {
			w.token(jsontext.String("pin"))
			w.token(jsontext.String(string(pin.Definition)))
			delete(w.pins, at)
		}
		w.token(jsontext.EndObject)
	}
	w.token(jsontext.EndObject)
}

// token writes to memory what was read strictly before, which cannot fail.
func (w pinWriter) token(t jsontext.Token) {
	if err := w.enc.WriteToken(t); err != nil {
		panic("settings: an allowlist that was judged does not encode: " + err.Error())
	}
}
