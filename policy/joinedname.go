package policy

import "fmt"

// Bounds of a tool's name on the gateway's endpoint for all servers.
const (
	MaxJoinedName  = 128 // MCP's limit; a tool with a longer name is left out
	longJoinedName = 64  // several model APIs accept no longer name
)

// JoinedName is the name of a server's tool or prompt for clients of all servers. No server's name
// contains the separator, but names of tools may.
func JoinedName(server, name string) string { return server + "__" + name }

// Joined returns a note on the parts of the tool that clients of all servers do not get, or may not
// be able to use; empty: none.
func (t *Tool) Joined() string {
	n := len(JoinedName(t.Server, t.Name))
	if n > MaxJoinedName {
		return fmt.Sprintf("not on /mcp: its name there would have %d bytes, and %d are allowed", n, MaxJoinedName)
	}
	if what := t.SDKFaults(); what != "" {
		return "not on /mcp for clients of revisions before 2026-07-28, whose SDK would reject the whole list: " + what
	}
	if n > longJoinedName {
		return fmt.Sprintf("its name on /mcp has %d bytes; several model APIs accept at most %d", n, longJoinedName)
	}
	return ""
}
