package gateway

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// A callParams holds the params of a tools/call.
type callParams struct {
	name, session   string
	arguments, meta jsontext.Value
	input           clientInput
}

// maxToolName bounds the name of a tool in a call, in bytes: the record holds the whole name.
const maxToolName = 4 << 10

// readCall reads the params of a tools/call. It refuses members that the protocol does not define,
// because no gate would see them.
func readCall(m *wire.Message) (p callParams, failed jsontext.Value) {
	named, given := false, false
	wrong := func(name, what string) { failed = rpcError(wire.InvalidParams, strconv.Quote(name)+" "+what) }
	isObject := func(member wire.Piece, orNull bool) {
		if kind := member.Value.Kind(); kind != '{' && !(orNull && kind == 'n') {
			wrong(member.Name, "is not an object")
		}
	}

	for _, member := range m.InnerMembers() {
		name, value := member.Name, member.Value
		// Possible only in a large message: see wire.Message.
		if name == "name" && named || name == "arguments" && given {
			wrong(name, "comes twice")
			continue
		}

		switch name {
		case "name":
			text, err := wire.Text(value)
			if err != nil || text == "" || len(text) > maxToolName {
				wrong(name, "is not the name of a tool")
				continue
			}
			p.name, named = text, true
		case "arguments":
			isObject(member, true)
			p.arguments, given = wire.NonNull(value), true // Go clients send null for absent arguments
		case "_meta":
			isObject(member, false)
			p.meta = value
			if named := wire.Member(value, wire.OwnSession); named != nil {
				text, err := wire.Text(named)
				if err != nil || !session.ValidName(text) {
					wrong(wire.OwnSession, "in _meta is not a text of 1 to "+strconv.Itoa(session.MaxName)+" printable ASCII characters without \\")
					continue
				}
				p.session = text
			}
		case "inputResponses":
			isObject(member, true)
			p.input.responses = wire.NonNull(wire.StripOwn(value))
		case "requestState":
			if value.Kind() != '"' && value.Kind() != 'n' {
				wrong(name, "is not a string")
			}
			p.input.state = wire.NonNull(value)
		case "task": // a member of revision 2025-11-25; servers without tasks ignore it (SEP-2663)
		default:
			if value.Kind() != 'n' {
				wrong(name, "is not a member of the params that passes")
			}
		}
	}

	if failed == nil && !named {
		wrong("name", "is missing")
	}

	if p.arguments == nil {
		p.arguments = jsontext.Value(`{}`)
	}

	return p, failed
}

// traceContext lists the members of _meta for the context of a trace (SEP-414),
// with their bounds in bytes from W3C Trace Context and Baggage.
var traceContext = map[string]int{metaTraceParent: 64, metaTraceState: 512, "baggage": 8192}

// callMeta returns the _meta of the call for the server: the progress token, the context of a
// trace, and the log level, which the link removes where the server does not accept it there. No
// gate judges _meta, no approval binds it and no record holds it. So nothing else passes that could
// change what a server does.
func (c *ToolCall) callMeta(sent jsontext.Value) jsontext.Value {
	if sent == nil && c.level == 0 { // nearly all calls
		return nil
	}
	var b wire.Object
	wire.ForEachMember(sent, func(p wire.Piece) {
		if p.Name == "progressToken" {
			if c.token != nil {
				b.Add(p.Name, p.Value)
			}
			return
		}
		limit, known := traceContext[p.Name]
		if text, err := wire.Text(p.Value); known && err == nil && len(text) <= limit {
			b.Add(p.Name, p.Value)
		}
	})
	if c.level > 0 {
		b.Add(metaLogLevel, wire.Quote(c.level.name()))
	}
	if len(b) == 0 {
		return nil
	}
	return b.Value()
}
