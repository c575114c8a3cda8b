package gateway

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// Headers of MCP, as net/http spells them.
const (
	headerVersion   = "Mcp-Protocol-Version"
	headerSession   = "Mcp-Session-Id"
	headerMethod    = "Mcp-Method"
	headerName      = "Mcp-Name"
	headerLastEvent = "Last-Event-Id"
)

// Members of the _meta object of a request of the stateless revisions.
const (
	metaVersion = "io.modelcontextprotocol/protocolVersion"
	metaClient  = "io.modelcontextprotocol/clientInfo"
)

// resumable is the first revision whose clients know what an event without a message is for.
const resumable = "2025-11-25"

// A claim is what the params of a message say about it. All of it is nil where it is not said.
type claim struct {
	version string         // of _meta; empty if there is none, or it is no string
	can     jsontext.Value // the client's capabilities, of _meta
	client  jsontext.Value // who the client says it is, of _meta
	name    jsontext.Value // the member that the Mcp-Name header repeats
}

// named is the member of the params that the Mcp-Name header repeats, by method.
func named(method string) string {
	switch method {
	case "tools/call", "prompts/get":
		return "name"
	case "resources/read":
		return "uri"
	case "tasks/get", "tasks/update", "tasks/cancel":
		return "taskId"
	}
	return ""
}

// claimOf reads what the params of a message say.
func claimOf(m *wire.Message) (c claim) {
	member := named(m.Method)
	skim(m.Params, func(name string, value jsontext.Value) {
		switch {
		case name == "_meta":
			skim(value, func(name string, value jsontext.Value) {
				switch name {
				case metaVersion:
					c.version, _ = wire.Text(value)
				case metaCapabilities:
					c.can = value
				case metaClient:
					c.client = value
				}
			})
		case name == member && member != "":
			c.name = value
		}
	})
	return c
}

// invalidParams refuses a request for what its params lack.
func invalidParams(message string) *refusal {
	return &refusal{status: http.StatusBadRequest, code: wire.InvalidParams, reason: refusedMessage, message: message}
}

// mismatch refuses a message for a header that does not say what its body does.
func mismatch(message string) *refusal {
	return &refusal{status: http.StatusBadRequest, code: wire.HeaderMismatch, reason: refusedMismatch, message: message}
}

// unsupported refuses a message of a revision that is not spoken here.
func unsupported(version string) *refusal {
	data := []byte(`{"supported":[`)
	for i, v := range Revisions() {
		if i > 0 {
			data = append(data, ',')
		}
		data = append(data, wire.Quote(v)...)
	}
	data = append(append(append(data, `],"requested":`...), wire.Quote(version)...), '}')
	return &refusal{status: http.StatusBadRequest, code: wire.UnsupportedVersion, message: "this revision of MCP is not spoken here", data: data}
}

// standsAlone holds a message of the stateless revisions to what it must say of itself. Header is nil where there are none; else
// headers must be there and say what the body says, for those in between who do not read bodies.
func standsAlone(h http.Header, m *wire.Message, c *claim) *refusal {
	version := c.version
	if h != nil {
		version = h.Get(headerVersion)
		if version == "" {
			return mismatch("the header MCP-Protocol-Version is missing; it repeats " + metaVersion + " of _meta")
		}
	}
	if m.Request() && c.version != "" && c.version != version {
		return mismatch("the header MCP-Protocol-Version and " + metaVersion + " of _meta are not the same")
	}
	if version != Stateless {
		return unsupported(version)
	}
	if m.Request() && c.version == "" {
		return invalidParams("_meta lacks " + metaVersion + ", a string")
	}
	if f := repeats(h, m, c, true); f != nil || !m.Request() {
		return f
	}
	if c.can.Kind() != '{' {
		return invalidParams("_meta lacks " + metaCapabilities + ", an object")
	}
	if c.client != nil && (c.client.Kind() != '{' || wire.Member(c.client, "name").Kind() != '"') {
		return invalidParams(metaClient + " of _meta is not an object with a name")
	}
	return nil
}

// repeats holds the headers that repeat parts of the body to the body. Must says that they have to be there.
func repeats(h http.Header, m *wire.Message, c *claim, must bool) *refusal {
	if h == nil || m.Response() {
		return nil
	}
	switch values := h[headerMethod]; {
	case len(values) == 0 && must:
		return mismatch("the header Mcp-Method is missing; it repeats the method")
	case len(values) > 0 && values[0] != m.Method:
		return mismatch("the header Mcp-Method does not say what the body says")
	}
	values := h[headerName]
	switch name := named(m.Method); {
	case name == "" || !m.Request(): // what a header says that repeats nothing counts for nothing
		return nil
	case len(values) == 0 && must:
		return mismatch("the header Mcp-Name is missing; it repeats " + name + " of the params")
	case len(values) == 0:
		return nil
	}
	said, ok := headerText(values[0])
	if text, err := wire.Text(c.name); !ok || err != nil || text != said {
		return mismatch("the header Mcp-Name does not say what the body says")
	}
	return nil
}

// headerText reads a header value that stands for a text: as it is, or as Base64 in =?base64?…?=.
func headerText(value string) (string, bool) {
	rest, ok := strings.CutPrefix(value, "=?base64?")
	if !ok {
		return value, true
	}
	if rest, ok = strings.CutSuffix(rest, "?="); !ok {
		return value, true
	}
	text, err := base64.StdEncoding.Strict().DecodeString(rest)
	return string(text), err == nil
}
