package gateway

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

// Calls judges each tools/call and makes the permitted calls. pgfsm implements it with
// runner.ConfiguredRunner, one for each generation of the gateway: a call keeps the configuration
// with which it was dispatched.
type Calls interface {
	// Tools returns the tools of a listing that a client may see, in the server's order.
	Tools(*upstream.CachedListing, *policy.Identity) []Tool
	// Call takes one call through all gates and returns its answer (internal/runner/call.go).
	Call(context.Context, *ToolCall) Answer
	// Task returns the state of a task that Call answered with. CancelTask requests the end of the
	// task. If the error object is not nil, it is the answer in place of the result. That includes
	// a task of another client.
	Task(ctx context.Context, client Identity, id string) (result, failed jsontext.Value)
	CancelTask(ctx context.Context, client Identity, id string) (result, failed jsontext.Value)
}

// A ToolCall is one tools/call of a client, with the names of the server and of the tool as the
// server knows them.
type ToolCall struct {
	From Identity
	// The identity provider's claims about the client of this request; nil for other clients.
	Identity  *policy.Identity
	Server    string
	Tool      string
	Arguments jsontext.Value // raw, as received; "{}" if absent
	// inputResponses and requestState of the params as one raw object; nil if both are absent.
	Extra jsontext.Value
	Meta  jsontext.Value // _meta object for the server; the link adds the members of its hop

	MCPSession string // the name of the client's session; empty if its revision has none
	Named      string // the session that the client named in _meta; empty if it named none

	Tasks  bool // the client accepts a task as the answer
	Elicit bool // the client can show a URL (elicitation, mode url)
	Shown  bool // the client repeats its call after ShowURL
	Repeat bool // ShowURL's URL replaces the answer, and the client repeats its call

	// Account is the account with which the call is made, at a server with Person; nil: none of a person. Unconnected says why
	// the call cannot be made; nil if it can.
	Person      bool
	Account     *upstream.Account
	Unconnected error

	// Connect returns the link with the call's server, and connects if there is none (links.go).
	// The call uses the link until it is answered.
	Connect func(context.Context) (Link, error)

	request *request // the client's request; nil in tests of Calls
	server  *server
	link    *link          // link in use; nil: none yet
	token   jsontext.Value // the client's progress token; nil if it gets no progress
	level   severity
	url     *urlElicitation // shown to a stateless client's user; nil: nothing
}

// An Answer is a result or an error object; exactly one is set.
type Answer struct {
	Result jsontext.Value
	Error  jsontext.Value
	// Members are those of a Result that was read strictly; nil if it was not.
	Members []wire.Piece
	// Native says that Result is the server's own, with masked secrets; results.go still adapts it
	// to the client. Otherwise the gateway made the result, and it fits the client's revision except
	// for "resultType", which the gateway adds where a revision requires it.
	Native bool
	// TokenRefused says that nothing was called, because the client's token is not valid any more.
	TokenRefused bool
	Judged       // the run is named if the client does not get a native result
}

// callTool answers tools/call.
func (g *Gateway) callTool(ctx context.Context, q *request) []byte {
	call, failed := g.newToolCall(q)
	if failed != nil {
		return q.answerError(failed)
	}
	defer call.releaseLink()

	ctx = upstreamContext(ctx, call.server)
	call.Account, call.Unconnected = g.accountOf(ctx, q, call.server)
	if failed := call.prepareCall(ctx); failed != nil {
		return q.relayError(call.server, failed)
	}
	return call.answerClient(q.config().Calls.Call(ctx, call))
}

// newToolCall reads the params of a tools/call and finds its server. The error object says why
// there is no call.
func (g *Gateway) newToolCall(q *request) (*ToolCall, jsontext.Value) {
	p, failed := readCall(&q.Message)
	if failed != nil {
		return nil, failed
	}
	if q.Large && !policy.TooManyValues(p.arguments) {
		return nil, rpcError(wire.InvalidRequest, wire.ErrLarge.Error())
	}

	// At the endpoint of all servers, the name has the server before the tool.
	server, tool := q.endpoint.server, p.name
	if server == nil {
		if server, tool = q.endpoint.splitName(p.name, ExposeTools); server == nil {
			return nil, rpcError(wire.InvalidParams, "there is no tool of this name; tools/list says which there are")
		}
	}

	q.observed.Server, q.observed.Tool = server.Name, tool

	shown := q.session == nil && p.input.ofHeldCall()
	if shown {
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
		Shown:     shown,
		Person:    server.Person,
		Named:     p.session,

		request: q,
		server:  server,
	}

	c.Connect = c.connectLink
	if q.session != nil {
		c.MCPSession = q.session.Name
	}

	// Progress and log messages of the server pass only if the operator exposes them.
	if server.Expose.Includes(ExposeProgress) {
		c.token = wire.ProgressToken(p.meta)
	}

	if server.Expose.Includes(ExposeLogging) {
		c.level = q.wantedLogLevel()
	}

	c.Meta = c.callMeta(p.meta)
	return c, nil
}

// prepareCall runs before the call is judged. It compares the client's headers with the arguments,
// and sets the log level of a shared server. If the server cannot be reached, Calls reports it.
func (c *ToolCall) prepareCall(ctx context.Context) (failed jsontext.Value) {
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
