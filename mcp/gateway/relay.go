package gateway

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// relay passes a request on to the server that it is for, or to all of them.
func (g *Gateway) relay(ctx context.Context, q *request, m *method) []byte {
	if m.name == methodSetLevel {
		return g.setLevel(ctx, q)
	}
	if q.endpoint.server != nil {
		return g.passOn(ctx, q, q.endpoint.server, q.Params)
	}
	switch m.name {
	case "resources/list", "resources/templates/list", "prompts/list":
		return g.listAll(ctx, q, m)
	}
	server, params, failed := g.route(ctx, q, m)
	if failed != nil {
		return q.fail(failed)
	}
	return g.passOn(ctx, q, server, params)
}

// passOn passes a request on to one server and returns the answer.
func (g *Gateway) passOn(ctx context.Context, q *request, server *Server, params jsontext.Value) []byte {
	p := &relayedRequest{gateway: g, q: q, server: server, params: params, out: clientStream{out: q.Out}}
	if asksInResults(q.Method) {
		sent := callParams{state: wire.NonNull(wire.Member(q.Params, "requestState")), responses: wire.NonNull(wire.Member(q.Params, "inputResponses"))}
		if message, ours := g.resumePending(upstreamContext(ctx, server), q, server, q.Method, sent); ours {
			return message
		}
		if g.serverMayAsk(ctx, q, server) {
			p.errand = g.newPendingRequest(q, server, q.Method, &p.out, p)
			return p.errand.start(upstreamContext(ctx, server), q)
		}
	}
	answer := p.run(ctx)
	return p.respond(q, &answer)
}

// mayAskDuring reports whether a server may ask something before it answers a method: in the stateless revisions only these have
// results that say so.
func asksInResults(method string) bool { return method == "prompts/get" || method == "resources/read" }

// A passage is one request that is passed on.
type relayedRequest struct {
	gateway *Gateway
	q       *request
	server  *Server
	params  jsontext.Value
	out     clientStream
	errand  *pendingRequest // nil: the server cannot ask by itself, or asks a session
}

// run passes the request on. What the server asks in its results is asked of the client until ctx ends.
func (p *relayedRequest) run(ctx context.Context) Answer {
	defer p.out.end()
	g, q, server, within := p.gateway, p.q, p.server, upstreamContext(ctx, p.server)
	l, err := g.linkTo(within, q, server)
	if err != nil {
		return Answer{Error: unreachable(server.Name, err)}
	}
	defer l.release()
	if p.errand != nil {
		l.assign(p.errand)
		defer l.unassign(p.errand)
	}
	level := g.levelFor(within, q, l)
	params, failed := g.openState(q, server, q.Method, p.params)
	if failed != nil {
		return Answer{Error: failed}
	}
	if params = wire.StripMeta(params); !server.Expose.Has(ExposeProgress) {
		params = wire.StripProgressToken(params)
	}
	params = withLevel(params, level)
	var asked inputRounds
	defer asked.end(g, q)
	for {
		answer := p.requestOnce(within, l, params, level)
		if !answer.Native {
			return answer
		}
		more, asks, code, why := g.askSession(ctx, q, server, &p.out, answer.Result, &asked)
		if !asks {
			return answer
		}
		if code == "" {
			if params, code = more.addTo(params); code == "" {
				continue
			}
		}
		return Answer{Error: inputRefused(server, code, why)}
	}
}

// request makes one request of the server.
func (p *relayedRequest) requestOnce(ctx context.Context, l *link, params jsontext.Value, level severity) Answer {
	g, q, server := p.gateway, p.q, p.server
	if err := g.record(ctx, q.From, server, ToServer, q.Method, params); err != nil {
		return Answer{Error: notRecorded}
	}
	watching := q.Method == methodSubscribe || q.Method == "resources/unsubscribe"
	if watching && l.Modern() {
		return g.subscribe(ctx, q, l)
	}
	reply, err := l.Request(ctx, q.Method, params, g.messageHandler(ctx, q, l, &p.out, level))
	switch {
	case err != nil:
		return Answer{Error: unreachable(server.Name, err)}
	case reply.Error != nil:
		return Answer{Error: g.options.Mask(reply.Error)}
	}
	if uri, err := wire.Text(wire.Member(params, "uri")); watching && err == nil {
		q.session.setWatch(server.Name, uri, q.Method == methodSubscribe) // for the link that may follow this one
	}
	return Answer{Result: g.options.Mask(reply.Result), Native: true}
}

// respond answers a request for what was passed on.
func (p *relayedRequest) respond(q *request, answer *Answer) []byte {
	switch {
	case answer.Error != nil:
		return q.failBack(p.server, answer.Error)
	case !answer.Native:
		return q.result(answer.Result)
	}
	result := wire.StripOwn(answer.Result)
	f, ok := readResult(result)
	if !ok {
		return q.refuse(wire.InternalError, "server %s: its result is not a JSON object", p.server.Name)
	}
	if code, why := q.mayReceive(p.server, &f); code != "" {
		return q.fail(inputRefused(p.server, code, why))
	}
	if !q.stateless() {
		return q.rawResult(f.rewrite(result, nil, false))
	}
	return q.rawResult(f.rewrite(result, p.gateway.self, cacheable(q.Method), p.gateway.sealState(q, p.server, q.Method, &f)...))
}

// cacheable reports whether a method's result says in the stateless revisions how long it may be kept.
func cacheable(method string) bool {
	switch method {
	case "resources/list", "resources/templates/list", "resources/read", "prompts/list":
		return true
	}
	return false
}

// bound is the context of a request that goes to a server: a server whose cancellation is not exposed is not told of it.
func upstreamContext(ctx context.Context, server *Server) context.Context {
	if server.Expose.Has(ExposeCancellation) {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// notRecorded is answered when what is to pass cannot be recorded. So it does not.
var notRecorded = invalid(wire.InternalError, "it could not be recorded, so it was not passed on")

// passes records that something is about to pass.
func (g *Gateway) record(ctx context.Context, who Identity, server *Server, direction, method string, params jsontext.Value) error {
	if g.options.Passed == nil {
		return nil
	}
	err := g.options.Passed(ctx, Passed{Identity: who, Server: server.Name, Direction: direction, Method: method, Params: params})
	if err != nil {
		g.options.Log.Error("a message did not pass because it could not be recorded", "server", server.Name, "method", method, "error", err.Error())
	}
	return err
}

// relayNote passes a notification of a session's client on.
func (g *Gateway) relayClientNotification(ctx context.Context, q *request, m *method) {
	s := q.session
	if s == nil {
		return
	}
	params := wire.StripMeta(q.Params)
	if m.name == "notifications/progress" {
		a := s.clientRequest(wire.Member(params, "progressToken"))
		if a == nil || a.link == nil || a.token == nil || !a.link.server.Expose.Has(m.needs) {
			return // it belongs to nothing that was asked
		}
		if params, err := wire.Set(params, "progressToken", a.token); err == nil {
			_ = a.link.Notify(ctx, m.name, params) // a server that cannot be told has lost its link
		}
		return
	}
	if !s.capabilities.roots {
		return
	}
	for _, l := range s.links.working(q.endpoint.exposing(m.needs)) {
		if g.record(ctx, q.From, l.server, ToServer, m.name, params) == nil {
			_ = l.Notify(ctx, m.name, params) // as above
		}
	}
}

// answerWait is how long telling a server something may take that it waits for.
const answerWait = 10 * time.Second
