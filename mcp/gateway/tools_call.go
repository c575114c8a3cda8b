package gateway

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

const methodCall = "tools/call"

// A callParams is the params of a tools/call, taken apart once.
type callParams struct {
	name            string
	arguments, meta jsontext.Value
	responses       jsontext.Value // inputResponses
	state           jsontext.Value // requestState
}

// onto is the params of a request with what its repetition has in addition. A code says that it cannot be.
func (p *callParams) addTo(params jsontext.Value) (_ jsontext.Value, code string) {
	params, err := wire.Set(params, "inputResponses", p.responses)
	if err == nil {
		params, err = wire.Set(params, "requestState", p.state)
	}
	if err != nil { // params that cannot be read do not get here
		return nil, CodeInputRefused
	}
	return params, ""
}

// readCall takes the params of a tools/call apart. What the protocol does not have there is refused: it would not be judged.
func readCall(params jsontext.Value) (p callParams, failed jsontext.Value) {
	named := false
	wrong := func(name, what string) { failed = invalid(wire.InvalidParams, strconv.Quote(name)+" "+what) }
	wire.Each(params, func(member wire.Piece) {
		name, value := member.Name, member.Value
		switch name {
		case "name":
			text, err := wire.Text(value)
			if err != nil || text == "" {
				wrong(name, "is not the name of a tool")
				return
			}
			p.name, named = text, true
		case "arguments":
			if value.Kind() != '{' {
				wrong(name, "is not an object")
			}
			p.arguments = value
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
		case "task": // of an older revision, which has clients ask for tasks: who does not know that ignores it (SEP-2663)
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

// call answers tools/call with what the machine makes of it.
func (g *Gateway) callTool(ctx context.Context, q *request) []byte {
	p, failed := readCall(q.Params)
	if failed != nil {
		return q.fail(failed)
	}
	server, tool := q.endpoint.server, p.name
	if server == nil {
		if server, tool, failed = g.resolveTool(ctx, q, p.name); failed != nil {
			return q.fail(failed)
		}
	}
	if message, ours := g.resumePending(upstreamContext(ctx, server), q, server, tool, p); ours {
		return message
	}
	if _, shown := q.ownState(stateURL, server, tool, p); shown {
		p.responses, p.state = nil, nil // what the client did with the URL decides nothing
	}
	if p.state, failed = g.checkInput(q, server, tool, p); failed != nil {
		return q.fail(failed)
	}
	c := &toolCall{gateway: g, q: q, server: server, tool: tool, params: p, capabilities: q.capabilities(), out: clientStream{out: q.Out}}
	if g.serverMayAsk(ctx, q, server) {
		c.errand = g.newPendingRequest(q, server, tool, &c.out, c)
		return c.errand.start(upstreamContext(ctx, server), q)
	}
	answer := c.run(ctx)
	return c.respond(q, &answer)
}

// run takes the call through everything that may refuse it, as often as the server asks the client in its results.
func (c *toolCall) run(ctx context.Context) Answer {
	defer c.end()
	g, q, within := c.gateway, c.q, upstreamContext(ctx, c.server)
	if q.stateless() && q.Header != nil {
		if failed := c.checkParamHeaders(within); failed != nil {
			return Answer{Error: failed}
		}
	}
	var asked inputRounds
	defer asked.end(g, q)
	for {
		answer := g.options.Calls.Call(within, c.toAsk(within))
		if !answer.Native {
			return answer
		}
		more, asks, code, why := g.askSession(ctx, q, c.server, &c.out, answer.Result, &asked)
		switch {
		case !asks:
			return answer
		case code != "":
			return Answer{Result: withheld(code, fmt.Sprintf("server %s: %s", c.server.Name, why), answer.RunID)}
		}
		c.params.responses, c.params.state = more.responses, more.state // the same call: a run of its own through everything
	}
}

// A calling is one tools/call under way.
type toolCall struct {
	gateway      *Gateway
	q            *request
	server       *Server
	tool         string
	params       callParams
	capabilities clientCapabilities
	out          clientStream
	token        jsontext.Value // the client's progress token; nil if it wants none, or may not have it
	level        severity
	errand       *pendingRequest // nil: the server cannot ask by itself, or asks a session
	elicitation  *urlElicitation // what a stateless client is to show its user; nil: nothing

	mu    sync.Mutex
	link  *link // in use; nil: none yet
	ended bool
}

// ask is the call for those who judge and make it.
func (c *toolCall) toAsk(ctx context.Context) *Ask {
	g, q, p := c.gateway, c.q, c.params
	if c.server.Expose.Has(ExposeProgress) {
		c.token = wire.ProgressToken(p.meta)
	}
	if c.level = q.wantedLogLevel(); !c.server.Expose.Has(ExposeLogging) {
		c.level = 0
	}
	if c.level > 0 && q.session == nil { // a server with sessions has to be told
		if l, err := c.connect(ctx); err == nil { // if not, the machine says so
			g.levelFor(ctx, q, l)
		}
	}
	a := &Ask{
		From: q.From, Server: c.server.Name, Tool: c.tool, Arguments: p.arguments, Extra: extra(p),
		Progress: c.token != nil && q.Out != nil,
		Tasks:    g.options.Tasks && c.capabilities.tasks,
		Elicit:   q.Out != nil && c.capabilities.showsURLs(),
		Returns:  q.session == nil,
		Meta:     c.callMeta(p.meta),
	}
	a.Link = func(ctx context.Context) (*upstream.Link, error) {
		l, err := c.connect(ctx)
		if err != nil {
			return nil, err
		}
		if l.Modern() { // nothing was known of the tool before
			if kept, err := l.Listing(ctx, g.options.MaxAge); err == nil { // if not, who calls finds the same
				a.Header = ParamHeader(l.tools.of(kept).tools[c.tool], p.arguments)
			}
		}
		return l.upstreamLink(), nil
	}
	a.Say = c.sendProgress
	a.Show = c.showURL
	a.Relay = func(m wire.Message) {
		if l := c.currentLink(); l != nil {
			g.messageHandler(ctx, q, l, &c.out, c.level)(m)
		}
	}
	return a
}

// passes reports whether a member of _meta goes with the call: the progress token, and the context of a trace. No gate judges
// any of _meta, no approval binds it and no record has it, so a server must find nothing in it to act on.
func (c *toolCall) metaPasses(name string, value jsontext.Value) bool {
	if name == "progressToken" {
		return c.token != nil
	}
	most, known := traceContext[name]
	text, err := wire.Text(value)
	return known && err == nil && len(text) <= most
}

// meta is the _meta that goes with the call: what passes, and the log level, which the link takes out again where the server
// does not want it there.
func (c *toolCall) callMeta(sent jsontext.Value) (meta jsontext.Value) {
	var b wire.Object
	wire.Each(sent, func(member wire.Piece) {
		name, value := member.Name, member.Value
		if c.metaPasses(name, value) {
			b.Add(name, value)
		}
	})
	meta = b.Done()
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

// say sends progress.
func (c *toolCall) sendProgress(done, total float64, note string) {
	if c.token == nil {
		return
	}
	var b wire.Object
	b.Add("progressToken", c.token)
	b.Add("progress", strconv.AppendFloat(nil, done, 'f', -1, 64))
	if total > 0 {
		b.Add("total", strconv.AppendFloat(nil, total, 'f', -1, 64))
	}
	if note != "" {
		b.Add("message", wire.Quote(note))
	}
	_ = c.out.send(wire.Call(nil, nil, "notifications/progress", b.Done())) // see stream
}

// held is the line that the call uses; nil before it has one.
func (c *toolCall) currentLink() *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link
}

// link is the line to the call's server. It stays in use until the request is answered; who asks later, for a task, uses it until
// their context ends.
func (c *toolCall) connect(ctx context.Context) (*link, error) {
	if l := c.currentLink(); l != nil && !l.ended() {
		return l, nil
	}
	q := c.q
	if q.session != nil && q.session.Context.Err() != nil { // the task outlives the session, but nobody can be asked any more
		q = &request{
			Request: &session.Request{From: q.From, Endpoint: q.Endpoint, Protocol: session.Stateless}, gateway: q.gateway, endpoint: q.endpoint,
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
	if c.errand != nil && !c.ended {
		l.assign(c.errand)
	}
	return l, nil
}

// end gives back what the call held.
func (c *toolCall) end() {
	c.out.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended = true; c.link != nil {
		c.link.unassign(c.errand)
		c.link.release()
		c.link = nil
	}
}

// respond answers a request for the call.
func (c *toolCall) respond(q *request, answer *Answer) []byte {
	switch {
	case answer.Error != nil:
		return q.failBack(c.server, answer.Error)
	case answer.Result == nil:
		return q.refuse(wire.InternalError, "there is no answer")
	case !answer.Native && c.elicitation != nil && q.capabilities().showsURLs():
		return q.result(c.elicitation.result(q, c.server, c.tool))
	case !answer.Native:
		return q.result(answer.Result)
	}
	g, result := c.gateway, wire.StripOwn(answer.Result)
	f, ok := readResult(result)
	if !ok {
		return q.refuse(wire.InternalError, "server %s: its result is not a JSON object", c.server.Name)
	}
	if code, why := q.mayReceive(c.server, &f); code != "" {
		return q.result(withheld(code, fmt.Sprintf("server %s: %s", c.server.Name, why), answer.RunID))
	}
	if !q.stateless() {
		return q.rawResult(f.rewrite(result, nil, false))
	}
	return q.rawResult(f.rewrite(result, g.self, false, g.sealState(q, c.server, c.tool, &f)...))
}

// extra is what of the params is neither name nor arguments.
func extra(p callParams) jsontext.Value {
	if p.responses == nil && p.state == nil {
		return nil
	}
	var b wire.Object
	if p.responses != nil {
		b.Add("inputResponses", p.responses)
	}
	if p.state != nil {
		b.Add("requestState", p.state)
	}
	return b.Done()
}

// traceContext are the members of _meta for the context of a trace (SEP-414): strings of at most so many bytes, as W3C Trace
// Context and Baggage bound them.
var traceContext = map[string]int{"traceparent": 64, "tracestate": 512, "baggage": 8192}
