package gateway

import (
	"context"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

// callTool answers tools/call.
func (g *Gateway) callTool(ctx context.Context, q *request) []byte {
	call, failed := g.newToolCall(q)
	if failed != nil {
		return q.answerError(failed)
	}
	defer call.releaseLink()

	ctx = upstreamContext(ctx, call.server)
	if failed := call.prepareLink(ctx); failed != nil {
		return q.relayError(call.server, failed)
	}
	return call.answerClient(q.config().Calls.Call(ctx, call))
}

// newToolCall reads the params of a tools/call and finds its server. The error object says why
// there is no call.
func (g *Gateway) newToolCall(q *request) (*ToolCall, jsontext.Value) {
	p, failed := readCall(q.Params)
	if failed != nil {
		return nil, failed
	}
	if q.Large && !policy.TooManyValues(p.arguments) {
		return nil, rpcError(wire.InvalidRequest, wire.ErrLarge.Error())
	}

	server, tool := q.endpoint.server, p.name
	if server == nil {
		if server, tool = q.endpoint.splitName(p.name, ExposeTools); server == nil {
			return nil, rpcError(wire.InvalidParams, "there is no tool of this name; tools/list says which there are")
		}
	}

	q.observed.Server, q.observed.Tool = server.Name, tool

	if q.session == nil && p.input.ofHeldCall() {
		p.input = clientInput{} // the call is judged the same whether the user opened the URL or not
	}

	if p.input.state, failed = q.openState(server, tool, p.input); failed != nil {
		return nil, failed
	}

	c := &ToolCall{
		From:      q.From,
		Identity:  q.Identity,
		Server:    server.Name,
		Tool:      tool,
		Arguments: p.arguments,
		Extra:     p.input.asObject(),
		Tasks:     g.options.Tasks && q.capabilities.tasks,
		Elicit:    q.capabilities.url,
		Repeat:    q.session == nil,

		request: q,
		server:  server,
	}

	c.Connect = c.connectLink
	if server.Expose.Includes(ExposeProgress) {
		c.token = wire.ProgressToken(p.meta)
	}

	if server.Expose.Includes(ExposeLogging) {
		c.level = q.wantedLogLevel()
	}

	c.Meta = c.callMeta(p.meta)
	return c, nil
}

// prepareLink runs before the call is judged. It compares the client's headers with the arguments,
// and sets the log level of a shared server. If the server cannot be reached, Calls reports it.
func (c *ToolCall) prepareLink(ctx context.Context) (failed jsontext.Value) {
	q := c.request
	if q.stateless() && q.Header != nil {
		if failed := c.checkParamHeaders(ctx); failed != nil {
			return failed
		}
	}
	if c.level > 0 && (q.session == nil || !c.server.separatesSessions()) {
		if _, err := c.connectLink(ctx); err == nil {
			c.link.setSharedLevel(ctx, c.level)
		}
	}
	return nil
}

// answerClient answers the client's request.
func (c *ToolCall) answerClient(a Answer) []byte {
	q := c.request
	q.noteResult(a.Result)
	q.observed.Judged = a.Judged
	switch {
	case a.Error != nil:
		return q.relayError(c.server, a.Error)
	case a.Result == nil:
		return q.answerErrorf(wire.InternalError, "there is no answer")
	case !a.Native && c.url != nil:
		return q.answerResult(c.url.asResult())
	case !a.Native:
		return q.answerResult(a.Result)
	}

	message, code, why := q.relayResult(c.server, c.Tool, a.Result, false)
	if code != "" {
		return q.answerResult(withheldResult(code, fmt.Sprintf("server %s: %s", c.Server, why), a.Run))
	}
	return message
}

// connectLink returns the link with the call's server. It replaces a link whose session the server
// has lost.
func (c *ToolCall) connectLink(ctx context.Context) (Link, error) {
	if c.link != nil && !c.link.Retired() {
		return c.link, nil
	}
	l, err := c.request.gateway.linkTo(ctx, c.request, c.server)
	if err != nil {
		return nil, err
	}
	if c.link != nil {
		c.link.release()
	}
	c.link = l
	return l, nil
}

// releaseLink releases the link.
func (c *ToolCall) releaseLink() {
	if c.link != nil {
		c.link.release()
	}
}

// A callParams holds the params of a tools/call.
type callParams struct {
	name            string
	arguments, meta jsontext.Value
	input           clientInput
}

// maxToolName bounds the name of a tool in a call, in bytes: the record holds the whole name.
const maxToolName = 4 << 10

// readCall reads the params of a tools/call. It refuses members that the protocol does not define,
// because no gate would see them.
func readCall(params jsontext.Value) (p callParams, failed jsontext.Value) {
	named, given := false, false
	wrong := func(name, what string) { failed = rpcError(wire.InvalidParams, strconv.Quote(name)+" "+what) }
	isObject := func(m wire.Piece, orNull bool) {
		if m.Value.Kind() != '{' && !(orNull && m.Value.Kind() == 'n') {
			wrong(m.Name, "is not an object")
		}
	}

	wire.ForEachMember(params, func(m wire.Piece) {
		name, value := m.Name, m.Value
		// Possible only in a large message: see wire.Message.
		if name == "name" && named || name == "arguments" && given {
			wrong(name, "comes twice")
			return
		}

		switch name {
		case "name":
			text, err := wire.Text(value)
			if err != nil || text == "" || len(text) > maxToolName {
				wrong(name, "is not the name of a tool")
				return
			}
			p.name, named = text, true
		case "arguments":
			isObject(m, true)
			p.arguments, given = wire.NonNull(value), true // Go clients send null for absent arguments
		case "_meta":
			isObject(m, false)
			p.meta = value
		case "inputResponses":
			isObject(m, true)
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
	})

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
