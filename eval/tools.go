package eval

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
	"pgfsm/policy"
)

// Bounds of a tools file.
const (
	MaxToolsBytes = 16 << 20
	MaxToolsDepth = 128
	MaxServers    = policy.MaxServers
	MaxTools      = 1024 // for one server
)

// Tools are the tools of servers, as their tools/list returns them. They are not trusted: the
// machine reads them as it reads any server's answer. They must not be changed.
type Tools struct {
	servers map[string][]jsontext.Value
	names   map[[2]string]bool // server and tool
	digest  canonical.Digest
}

// toolsFile is the shape of the file.
type toolsFile struct {
	Servers map[string]toolsServer `json:"servers"`
}

type toolsServer struct {
	Tools []jsontext.Value `json:"tools"`
}

// ReadTools reads a tools file. name is what messages call it. The error is a [*Fault].
func ReadTools(name string, text []byte) (*Tools, error) {
	fault := func(format string, args ...any) (*Tools, error) {
		return nil, &Fault{File: name, Problem: fmt.Sprintf(format, args...),
			Remedy: "docs/reference/evaluation-format.md says what a tools file has"}
	}
	if len(text) > MaxToolsBytes {
		return fault("it has %d bytes; at most %d are read", len(text), MaxToolsBytes)
	}
	if err := canonical.Check(text, MaxToolsDepth); err != nil {
		return fault("it is no strict JSON: %s", oneLine(err))
	}
	var file toolsFile
	if err := canonical.Unmarshal(text, &file); err != nil {
		return fault("it is no tools file: %s", oneLine(err))
	}
	if n := len(file.Servers); n < 1 || n > MaxServers {
		return fault("it names %d servers; it must be 1 to %d", n, MaxServers)
	}

	document, err := canonical.JSON(text)
	if err != nil {
		return fault("it is no strict JSON: %s", oneLine(err))
	}

	t := &Tools{servers: make(map[string][]jsontext.Value), names: make(map[[2]string]bool),
		digest: canonical.Sum("evaluation tools", document)}
	// Sorted, so that the first fault is always the same.
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		if err := t.addServer(name, file.Servers[name].Tools); err != nil {
			return fault("server %q: %v", clipText(name), err)
		}
	}

	return t, nil
}

func (t *Tools) addServer(server string, tools []jsontext.Value) error {
	if server == "" || len(server) > MaxIDBytes || visible.Text(server) != server {
		return fmt.Errorf("its name must have 1 to %d bytes that can be shown", MaxIDBytes)
	}
	if len(tools) > MaxTools {
		return fmt.Errorf("it has %d tools; at most %d are read", len(tools), MaxTools)
	}
	for i, raw := range tools {
		var named struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(raw, &named); err != nil || named.Name == "" {
			return fmt.Errorf("tool %d is no object with a name", i+1)
		}
		t.names[[2]string{server, named.Name}] = true
	}
	t.servers[server] = tools
	return nil
}

// ToolsOf returns the tools of a server as they are in the file; false if the file has no such
// server.
func (t *Tools) ToolsOf(server string) ([]jsontext.Value, bool) {
	tools, ok := t.servers[server]
	return tools, ok
}

// Lists reports whether a server offers a tool of that name.
func (t *Tools) Lists(server, tool string) bool { return t.names[[2]string{server, tool}] }

// Digest names the file's content in canonical form.
func (t *Tools) Digest() canonical.Digest { return t.digest }
