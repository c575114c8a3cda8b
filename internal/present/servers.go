package present

import (
	"strings"

	"pgfsm/internal/canonical"
	"pgfsm/internal/docdiff"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// ServerUnknown is the status of a server that the service has not asked yet. The other values are
// [policy.ServerUp] and [policy.ServerDown].
const ServerUnknown = "unknown"

// Servers holds the servers of a service. Every member is always present.
type Servers struct {
	SchemaVersion int      `json:"schema_version"`
	Note          string   `json:"note"`    // missing data, and the reason; empty: nothing is missing
	Counted       Window   `json:"counted"` // the runs behind Calls and Failures
	Servers       []Server `json:"servers"`
}

// A Server is a server with the data of its last listing. Members other than Server are empty if
// they are unknown.
type Server struct {
	Server   string       `json:"server"`
	Status   string       `json:"status"`   // up, down or unknown
	Since    string       `json:"since"`    // start of the current status, as the service saw it
	Asked    string       `json:"asked"`    // time of the last attempt to list the tools
	Name     string       `json:"name"`     // the server's own name
	Version  string       `json:"version"`  // the server's own version
	Protocol string       `json:"protocol"` // MCP revision
	Code     policy.Code  `json:"code"`     // cause of status down
	Reason   string       `json:"reason"`
	Calls    int          `json:"calls"`    // sent calls of the counted runs
	Failures int          `json:"failures"` // calls that failed or have an unknown outcome
	Tools    []ServerTool `json:"tools"`
}

// A ServerTool is a tool of a server, with the command to run for it.
type ServerTool struct {
	Tool
	Drifted bool `json:"drifted"` // the live definition differs from the pinned one
	// The pinned definition is stored, so that Changes has all that changed.
	Stored  bool             `json:"stored"`
	Changes []docdiff.Change `json:"changes"` // changes since the pinned definition
	// The command to allow the live definition; empty: nothing to do.
	Next string `json:"next"`
	Live []byte `json:"-"` // the whole definition, canonical, if the tool drifted
}

// Pins locate the stored pins.
type Pins struct {
	Config    string // the configuration file, as the user named it; empty: the default
	Allowlist string // the allowlist file; empty: there is none to change
	// Definition returns the stored definition with a digest; nil if there is none.
	Definition func(canonical.Digest) []byte
}

// Command writes a command about the pin of a tool.
func (p *Pins) Command(server, tool string, words ...string) string {
	return p.commandLine(server, tool, append([]string{"pgfsm", "pins"}, words...)...)
}

func (p *Pins) commandLine(server, tool string, words ...string) string {
	if p.Config != "" {
		words = append(words, "-c", p.Config)
	}
	if strings.HasPrefix(tool, "-") {
		words = append(words, "--")
	}
	return CommandLine(append(words, server, tool)...)
}

// ServerTools returns the tools of one server of a catalog, compared with their pins. Tools on the
// allowlist come first.
func ServerTools(content *policy.Content, c *policy.Catalog, server string, pins *Pins) []ServerTool {
	definitions := make(map[canonical.Digest][]byte)
	for _, s := range c.Servers {
		for _, t := range s.Tools {
			definitions[t.Digest] = t.Definition
		}
	}
	first, others := []ServerTool{}, []ServerTool{}
	for _, tool := range Tools(content, c) {
		if tool.Server != server {
			continue
		}
		t := ServerTool{Tool: tool, Changes: []docdiff.Change{}}
		t.compareWithPin(definitions, pins)
		if t.onAllowlist || t.Definition == "" {
			first = append(first, t)
		} else {
			others = append(others, t)
		}
	}
	return append(first, others...)
}

// compareWithPin compares a tool with its pin.
func (t *ServerTool) compareWithPin(definitions map[canonical.Digest][]byte, pins *Pins) {
	live := definitions[t.Definition]
	if t.Drifted = t.Pin != "" && live != nil && t.Pin != t.Definition; t.Drifted {
		t.Live = live
		if pinned := pins.Definition(t.Pin); pinned != nil {
			t.Stored, t.Changes = true, docdiff.JSON("", pinned, live)
		}
	}
	switch {
	case pins.Allowlist == "":
	case t.Code == policy.CodeToolNotAllowed:
		t.Next = pins.commandLine(t.Server, t.Name, "pgfsm", "allow")
	case t.Drifted:
		t.Next = pins.Command(t.Server, t.Name, "approve", "--expect", string(t.Definition))
	case t.Pin == "" && t.Allowed:
		t.Next = pins.Command(t.Server, t.Name, "approve")
	}
}

// NewServers counts the calls of the newest runs for the servers that a service knows, and adds
// servers that only the ledger knows.
func NewServers(r ledger.Reader, servers []Server, note string) (s Servers, err error) {
	s = Servers{SchemaVersion: SchemaVersion, Note: note, Servers: append([]Server{}, servers...)}
	indexOf := make(map[string]int)

	for i := range s.Servers {
		indexOf[s.Servers[i].Server] = i
	}

	s.Counted, err = countRuns(r, func(q *ledger.RunRow) error {
		if q.Server == "" {
			return nil
		}
		// The ledger may name servers that the configuration no longer has.
		i, found := indexOf[q.Server]
		if !found {
			i = len(s.Servers)
			indexOf[q.Server] = i
			s.Servers = append(s.Servers, Server{Server: q.Server, Status: ServerUnknown, Tools: []ServerTool{}})
		}
		if q.Sent != "" {
			s.Servers[i].Calls++
		}
		if q.Sent != "" && (q.Status == ledger.Failed || q.Status == ledger.Indeterminate || q.Status == ledger.Reported && q.Code != "") {
			s.Servers[i].Failures++
		}
		return nil
	})

	return s, err
}
