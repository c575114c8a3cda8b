package gateway

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

// MethodCall is the method of calls.
const MethodCall = "tools/call"

// callTool answers tools/call.
func (g *Gateway) callTool(ctx context.Context, q *request) []byte {
	p, failed := readCall(q.Params)
	if failed == nil && q.Large && !policy.TooManyValues(p.arguments) {
		failed = invalid(wire.InvalidRequest, wire.ErrLarge.Error())
	}
	if failed != nil {
		return q.fail(failed)
	}
	server, tool := q.endpoint.server, p.name
	if server == nil {
		if server, tool, failed = g.resolveTool(ctx, q, p.name); failed != nil {
			return q.fail(failed)
		}
	}
	q.observed.Server, q.observed.Tool = server.Name, tool
	if message, ours := g.resumePending(ctx, q, server, tool, p.clientInput); ours {
		return message
	}
	if q.ofHeldCall(p.clientInput) {
		p.clientInput = clientInput{} // whether the client opened the URL decides nothing
	}
	if p.state, failed = g.openState(q, server, tool, p.clientInput); failed != nil {
		return q.fail(failed)
	}
	c := &toolCall{forward: g.newForward(q, server, tool), params: p, capabilities: q.capabilities()}
	if g.serverMayAsk(ctx, q, server) {
		return c.startPending(ctx, c)
	}
	c.Run(ctx)
	return c.respond(q)
}

// A callParams is the params of a tools/call.
type callParams struct {
	name            string
	arguments, meta jsontext.Value
	clientInput
}

// maxToolName bounds the name of a tool in a call, in bytes: the record has it whole.
const maxToolName = 4 << 10

// readCall reads the params of a tools/call. It refuses members that the protocol does not have, because no gate would see them.
func readCall(params jsontext.Value) (p callParams, failed jsontext.Value) {
	named, given := false, false
	wrong := func(name, what string) { failed = invalid(wire.InvalidParams, strconv.Quote(name)+" "+what) }
	wire.Each(params, func(m wire.Piece) {
		name, value := m.Name, m.Value
		if name == "name" && named || name == "arguments" && given { // only in a large message: see wire.Message
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
			if value.Kind() != '{' && value.Kind() != 'n' {
				wrong(name, "is not an object")
			}
			p.arguments, given = wire.NonNull(value), true // Go clients send null for none
		case "_meta":
			if value.Kind() != '{' {
				wrong(name, "is not an object")
			}
			p.meta = value
		case "inputResponses":
			if value.Kind() != '{' && value.Kind() != 'n' {
				wrong(name, "is not an object")
			}
			p.responses = wire.NonNull(wire.StripOwn(value))
		case "requestState":
			if value.Kind() != '"' && value.Kind() != 'n' {
				wrong(name, "is not a string")
			}
			p.state = wire.NonNull(value)
		case "task": // of revision 2025-11-25; who does not know it ignores it (SEP-2663)
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

// A toolCall is one tools/call under way.
type toolCall struct {
	forward
	params       callParams
	capabilities ask.Capabilities
	token        jsontext.Value // the client's progress token; nil if it gets no progress
	level        severity
	elicitation  *urlElicitation // what a stateless client shows its user; nil: nothing

	mu    sync.Mutex
	link  *link // in use; nil: none yet
	ended bool
}

// Run has the call decided and made. If the results ask the client of a session, it repeats the call with the answers.
func (c *toolCall) Run(ctx context.Context) {
	defer c.releasePending()
	defer c.end()
	g, q, within := c.gateway, c.q, upstreamContext(ctx, c.server)
	if q.stateless() && q.Header != nil {
		if failed := c.checkParamHeaders(within); failed != nil {
			c.answer = Answer{Error: failed}
			return
		}
	}
	var rounds ask.Rounds
	defer rounds.End(g.table, q.From)
	for {
		c.setAnswer(q.config().Calls.Call(within, c.newAsk(within)))
		if !c.answer.Native {
			return
		}
		input, asks, code, why := c.askSession(ctx, &rounds)
		switch {
		case !asks:
			return
		case code != "":
			c.answer = c.withheld(code, why)
			return
		}
		c.params.clientInput = input // the repeated call passes all gates again
	}
}

// withheld is the answer if the client does not get the result of the call.
func (c *toolCall) withheld(code, why string) Answer {
	return Answer{Result: withheld(code, fmt.Sprintf("server %s: %s", c.server.Name, why), c.answer.Run), Judged: c.answer.Judged}
}

// newAsk is the call for [Calls].
func (c *toolCall) newAsk(ctx context.Context) *Ask {
	g, q, p := c.gateway, c.q, c.params
	if c.server.Expose.Has(ExposeProgress) {
		c.token = wire.ProgressToken(p.meta)
	}
	if c.level = q.wantedLogLevel(); !c.server.Expose.Has(ExposeLogging) {
		c.level = 0
	}
	if c.level > 0 && (q.session == nil || !c.server.separate()) { // a server with sessions has to be told
		if l, err := c.connect(ctx); err == nil { // if it fails, Calls fails too
			g.levelFor(ctx, q, l)
		}
	}
	a := &Ask{
		From: q.From, Identity: q.Identity, Server: c.server.Name, Tool: c.target, Arguments: p.arguments, Extra: extra(p.clientInput),
		Progress: c.token != nil && q.Out != nil,
		Tasks:    g.options.Tasks && c.capabilities.Tasks,
		Elicit:   q.Out != nil && c.capabilities.ShowsURLs(),
		Returns:  q.session == nil,
		Meta:     c.callMeta(p.meta),
		Say:      c.sendProgress,
		Show:     c.showURL,
		Relay:    func(m wire.Message) { c.relayMessage(ctx, m) },
	}
	a.Link = func(ctx context.Context) (Link, error) {
		l, err := c.connect(ctx)
		if err != nil {
			return nil, err
		}
		if l.Modern() {
			if listing, err := l.Listing(ctx, q.config().MaxAge); err == nil { // if it fails, Calls fails too
				a.Header = ParamHeader(l.catalogOf(listing).tools[c.target], p.arguments)
			}
		}
		return l, nil
	}
	return a
}

// relayMessage relays what the server sends during the call.
func (c *toolCall) relayMessage(ctx context.Context, m wire.Message) {
	if l := c.currentLink(); l != nil {
		c.gateway.relayDuring(ctx, c.q, l, c.out, c.level, m)
	}
}

// extra is the client's input as one object.
func extra(in clientInput) jsontext.Value {
	if in.responses == nil && in.state == nil {
		return nil
	}
	var b wire.Object
	if in.responses != nil {
		b.Add("inputResponses", in.responses)
	}
	if in.state != nil {
		b.Add("requestState", in.state)
	}
	return b.Done()
}

// traceContext are the members of _meta for the context of a trace (SEP-414), and how many bytes they may have, as W3C Trace Context and
// Baggage bound them.
var traceContext = map[string]int{metaTraceParent: 64, metaTraceState: 512, "baggage": 8192}

// callMeta is the _meta that goes with the call: the progress token, the context of a trace, and the log level, which the link removes
// where the server does not take it there. No gate judges _meta, no approval binds it and no record has it. So nothing else passes on which
// a server could act.
func (c *toolCall) callMeta(sent jsontext.Value) jsontext.Value {
	var b wire.Object
	wire.Each(sent, func(p wire.Piece) {
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
	meta := b.Done()
	if c.level > 0 {
		if with, err := wire.Set(meta, metaLogLevel, wire.Quote(severities[c.level-1])); err == nil {
			meta = with
		}
	}
	if string(meta) == `{}` {
		return nil
	}
	return meta
}

// sendProgress sends progress of the gateway's own.
func (c *toolCall) sendProgress(done, total float64, message string) {
	if c.token == nil {
		return
	}
	var b wire.Object
	b.Add("progressToken", c.token)
	b.Add("progress", strconv.AppendFloat(nil, done, 'f', -1, 64))
	if total > 0 {
		b.Add("total", strconv.AppendFloat(nil, total, 'f', -1, 64))
	}
	if message != "" {
		b.Add("message", wire.Quote(message))
	}
	_ = c.out.Send(wire.Call(nil, nil, "notifications/progress", b.Done())) // the front notices that the client is gone
}

// currentLink is the link that the call uses; nil before it has one.
func (c *toolCall) currentLink() *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link
}

// connect returns the link with the call's server. The call uses it until it is answered; a later caller, for a task, until its context
// ends.
func (c *toolCall) connect(ctx context.Context) (*link, error) {
	if l := c.currentLink(); l != nil && !l.Retired() {
		return l, nil
	}
	q := c.q
	if q.session != nil && q.session.Context.Err() != nil { // a task outlives its session, but nobody can be asked any more
		q = &request{
			Request: &session.Request{From: q.From, Endpoint: q.Endpoint, Protocol: session.Stateless}, gateway: q.gateway, using: q.using, endpoint: q.endpoint,
		}
	}
	l, err := c.gateway.linkTo(ctx, q, c.server)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
		context.AfterFunc(ctx, l.release)
	case c.link != nil:
		c.link.release()
	}
	c.link = l
	if c.pending != nil && !c.ended {
		l.assign(c.pending)
	}
	return l, nil
}

// end releases the link.
func (c *toolCall) end() {
	c.out.End()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended = true; c.link != nil {
		c.link.unassign(c.pending)
		c.link.release()
		c.link = nil
	}
}

// Respond answers a request of the client with the answer of the call.
func (c *toolCall) Respond(request *session.Request) []byte {
	q, _ := c.gateway.newRequest(request)
	defer q.release()
	return c.respond(q)
}

func (c *toolCall) respond(q *request) []byte {
	q.noteResult(c.answer.Result)
	q.observed.Judged = c.answer.Judged
	switch {
	case c.answer.Error != nil:
		return q.relayError(c.server, c.answer.Error)
	case c.answer.Result == nil:
		return q.refuse(wire.InternalError, "there is no answer")
	case !c.answer.Native && c.elicitation != nil && q.capabilities().ShowsURLs():
		return q.result(c.elicitation.result())
	case !c.answer.Native:
		return q.result(c.answer.Result)
	}
	message, code, why := c.relayResult(q, false)
	if code != "" {
		return q.result(c.withheld(code, why).Result)
	}
	return message
}
