package config

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
	"pgfsm/policy"
)

// A ClientServer is one server of a client's file, checked like a server of [Load].
type ClientServer struct {
	Name    string           `json:"name"` // the name in the file; safe to print only if Refused is empty
	Digest  canonical.Digest `json:"digest"`
	Runs    string           `json:"runs"`             // printable: the command line or URL, and the variables or headers with their references
	Warning string           `json:"warning,omitzero"` // printable: names variables that can make it run other code; mostly empty
	Refused string           `json:"refused,omitzero"` // printable: the reason not to import the server; empty if it is usable
}

// ReadClient returns the servers of a client's own file, in its order. It starts none of them. The error is of type
// [Errors].
func ReadClient(name string, text []byte) ([]ClientServer, error) {
	c, err := readClient(name, text)
	if err != nil {
		return nil, err
	}
	var out []ClientServer
	taken := 0
	for i := range c.servers {
		m := &c.servers[i]
		s := ClientServer{Name: m.key, Digest: m.digest(), Runs: m.printable(), Warning: m.warning()}
		disabled := m.disabled()
		c.faults = nil
		switch adopted := c.adopt(m); {
		case adopted == nil:
			s.Refused = c.problems()
		case disabled:
			s.Refused = "it is disabled in this file"
		default:
			if taken++; taken > policy.MaxServers {
				s.Refused = fmt.Sprintf("at most %d servers are accepted", policy.MaxServers)
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// disabled reports whether the client does not start the server.
func (m *member) disabled() bool {
	n := m.value.get("disabled")
	return n != nil && n.text == "true"
}

// problems writes the faults in one line.
func (f *file) problems() string {
	var all []string
	for _, e := range f.faults {
		all = append(all, e.Problem)
	}
	return visible.Text(strings.Join(all, "; "))
}

// maxComment bounds the text of an entry that a comment repeats.
const maxComment = 1000

// Imported writes a configuration that lists the usable servers of a client's file. path is the file's path, relative to the folder of the
// configuration.
func Imported(path string, servers []ClientServer) []byte {
	var b strings.Builder
	b.WriteString(`# yaml-language-server: $schema=pgfsm.schema.json
# The configuration of pgfsm. What a key means: the schema, or "pgfsm init" in another folder, which writes a file with
# every key in it. Check this file: pgfsm config check -c pgfsm.yaml
# Only you may be able to write this file: it starts commands.
version: 1

# A client's own file. pgfsm uses only the servers of it that are listed here, and only while the digest of each entry in
# the file is the one below. The comment above a server shows what its entry ran when init listed it.
`)
	if !filepath.IsAbs(path) && strings.HasPrefix(path, "~") {
		path = "./" + path // keeps ~ from meaning a home folder
	}
	fmt.Fprintf(&b, "mcp_servers: %s\nservers:\n", quoted(path))
	for _, s := range servers {
		if s.Refused == "" {
			fmt.Fprintf(&b, "  # %s\n", visible.Clip(s.Runs, maxComment))
			if s.Warning != "" {
				fmt.Fprintf(&b, "  # It %s.\n", visible.Clip(s.Warning, maxComment))
			}
			fmt.Fprintf(&b, "  %s: {digest: %q}\n", quoted(s.Name), s.Digest)
		}
	}
	b.WriteString(`
# The tools that may be called at all: {"server": ["tool", …]}. pgfsm refuses all others; {} allows none.
allowlist: allowlist.json

# auto: routes first, of which there are none yet; then the model that planner.llm or LLM_BASE_URL and LLM_MODEL name.
planner: {mode: auto}
`)
	return []byte(b.String())
}

// quoted writes a text as JSON does, which YAML reads as the same text.
func quoted(s string) string {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil { // not UTF-8: a configuration cannot name the file
		return strconv.QuoteToASCII(s)
	}
	return string(b)
}
