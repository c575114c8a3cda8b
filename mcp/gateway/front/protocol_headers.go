package front

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// Headers of MCP, by their canonical names.
const (
	headerVersion   = "Mcp-Protocol-Version"
	headerSession   = "Mcp-Session-Id"
	headerMethod    = "Mcp-Method"
	headerName      = "Mcp-Name"
	headerLastEvent = "Last-Event-Id"
)

// Members of the _meta object of stateless requests.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
)

// Methods that the front treats differently.
const (
	methodInitialize = "initialize"
	methodListen     = "subscriptions/listen"
	methodCall       = "tools/call"
	methodCancelled  = "notifications/cancelled"
)

// resumable is the first revision whose clients accept an event that has only an id and no message.
const resumable = "2025-11-25"

// A declaration holds the statements of a message's params about the message. Missing members are
// nil or empty.
type declaration struct {
	version      string         // from _meta
	capabilities jsontext.Value // from _meta
	client       jsontext.Value // from _meta
	name         jsontext.Value // value of the member that the Mcp-Name header repeats
}

// nameMember returns the name of the member of the params that the Mcp-Name header repeats, by
// method.
func nameMember(method string) string {
	switch method {
	case methodCall, "prompts/get":
		return "name"
	case "resources/read":
		return "uri"
	case "tasks/get", "tasks/update", "tasks/cancel":
		return "taskId"
	}
	return ""
}

// readDeclaration reads the declaration in the params of a message.
func readDeclaration(m *wire.Message) (d declaration) {
	member := nameMember(m.Method)
	for _, p := range m.InnerMembers() {
		switch {
		case p.Name == "_meta":
			wire.ForEachMember(p.Value, func(p wire.Piece) {
				switch p.Name {
				case metaVersion:
					d.version, _ = wire.Text(p.Value)
				case metaCapabilities:
					d.capabilities = p.Value
				case metaClient:
					d.client = p.Value
				}
			})
		case p.Name == member && member != "":
			d.name = p.Value
		}
	}
	return d
}

// applyRevision finds the revision in force for a message over HTTP, and applies its rules. It sets
// the request's session.
func (x *exchange) applyRevision(q *session.Request) *refusal {
	h := x.r.Header
	version, id := h.Get(headerVersion), h.Get(headerSession)
	if version >= session.Stateless || id == "" {
		d := readDeclaration(&q.Message)
		if version >= session.Stateless || d.version != "" {
			q.Protocol, q.Header = version, h
			return checkStateless(h, &q.Message, &d)
		}
	}

	// Not stateless: the message belongs to a session, or opens one.
	if version != "" && !slices.Contains(session.StatefulRevisions, version) {
		return unsupportedVersion(version)
	}
	if id == "" {
		if q.Method == methodInitialize {
			return nil
		}
		f := newRefusal(http.StatusBadRequest, refusedSessionless,
			"the header Mcp-Session-Id is missing; send initialize, or the _meta of "+session.Stateless)
		f.code = wire.InvalidRequest
		return f
	}

	s, refused := x.sessionOf(id, version)
	if refused != nil {
		return refused
	}

	q.Session, q.Protocol = s, s.Protocol
	if h[headerMethod] != nil || h[headerName] != nil {
		d := readDeclaration(&q.Message)
		return checkRepeatedMembers(h, &q.Message, &d, false)
	}

	return nil
}

// checkStateless refuses a stateless message that lacks a required declaration. Over HTTP, h holds
// the headers, which must repeat parts of the body for proxies that do not read bodies; over other
// transports h is nil.
func checkStateless(h http.Header, m *wire.Message, d *declaration) *refusal {
	version := d.version
	if h != nil {
		version = h.Get(headerVersion)
		if version == "" {
			return headerMismatch("the header MCP-Protocol-Version is missing; it repeats " + metaVersion + " of _meta")
		}
	}

	if m.Request() && d.version != "" && d.version != version {
		return headerMismatch("the header MCP-Protocol-Version and " + metaVersion + " of _meta differ")
	}

	if version != session.Stateless {
		return unsupportedVersion(version)
	}
	if m.Request() && d.version == "" {
		return invalidMessage(wire.InvalidParams, "_meta lacks "+metaVersion+", a string")
	}

	if refused := checkRepeatedMembers(h, m, d, true); refused != nil || !m.Request() {
		return refused
	}
	if d.capabilities.Kind() != '{' {
		return invalidMessage(wire.InvalidParams, "_meta lacks "+metaCapabilities+", an object")
	}
	if d.client != nil && (d.client.Kind() != '{' || wire.Member(d.client, "name").Kind() != '"') {
		return invalidMessage(wire.InvalidParams, metaClient+" of _meta is not an object with a name")
	}

	return nil
}

// checkRepeatedMembers compares the headers that repeat members of the body with the body. If
// required is set, the headers must be present.
func checkRepeatedMembers(h http.Header, m *wire.Message, d *declaration, required bool) *refusal {
	if h == nil || m.Response() {
		return nil
	}

	switch values := h[headerMethod]; {
	case len(values) == 0 && required:
		return headerMismatch("the header Mcp-Method is missing; it repeats the method")
	case len(values) > 0 && values[0] != m.Method:
		return headerMismatch("the header Mcp-Method differs from the body")
	}

	values := h[headerName]
	switch member := nameMember(m.Method); {
	case member == "" || !m.Request(): // the header repeats nothing, so its value does not matter
		return nil
	case len(values) == 0 && required:
		return headerMismatch("the header Mcp-Name is missing; it repeats " + member + " of the params")
	case len(values) == 0:
		return nil
	}

	header, ok := DecodeHeader(values[0])
	if name, err := wire.Text(d.name); !ok || err != nil || name != header {
		return headerMismatch("the header Mcp-Name differs from the body")
	}

	return nil
}

// DecodeHeader returns the text of a header value, which may be Base64 in =?base64?…?=.
func DecodeHeader(value string) (string, bool) {
	encoded, ok := strings.CutPrefix(value, "=?base64?")
	if !ok {
		return value, true
	}
	if encoded, ok = strings.CutSuffix(encoded, "?="); !ok {
		return value, true
	}
	text, err := base64.StdEncoding.Strict().DecodeString(encoded)
	return string(text), err == nil
}
