package gateway

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// relay relays a request to the server that it is for, or to all servers.
func (g *Gateway) relay(ctx context.Context, q *request, m *method) []byte {
	if m.name == methodSetLevel {
		return g.setLevel(ctx, q)
	}
	if q.endpoint.server != nil {
		return g.relayTo(ctx, q, q.endpoint.server, q.Params)
	}
	switch m.name {
	case "resources/list", "resources/templates/list", "prompts/list":
		return g.listAll(ctx, q, m)
	}
	server, params, failed := g.route(ctx, q, m)
	if failed != nil {
		return q.fail(failed)
	}
	return g.relayTo(ctx, q, server, params)
}

// relayTo relays a request to one server and returns the answer.
func (g *Gateway) relayTo(ctx context.Context, q *request, server *server, params jsontext.Value) []byte {
	if (q.Method == methodSubscribe || q.Method == methodUnsubscribe) && !server.separate() {
		return q.refuse(wire.MethodNotFound, "server %s notifies of resources only if each client has its own session with it (servers.%s.sessions: session)",
			server.Name, server.Name)
	}
	r := &relayedRequest{forward: g.newForward(q, server, q.Method), params: params}
	if asksInResults(q.Method) {
		if message, ours := g.resumePending(ctx, q, server, q.Method, readInput(q.Params)); ours {
			return message
		}
		if g.serverMayAsk(ctx, q, server) {
			return r.startPending(ctx, r)
		}
	}
	r.Run(ctx)
	return r.respond(q)
}

// asksInResults reports whether the stateless revisions have results of a method that ask the client. During other requests a server
// cannot ask a stateless client.
func asksInResults(method string) bool { return method == "prompts/get" || method == "resources/read" }

// A relayedRequest is a request that is relayed to one server.
type relayedRequest struct {
	forward
	params jsontext.Value
}

// Run relays the request. If the results ask the client of a session, it repeats the request with the answers until ctx ends.
func (r *relayedRequest) Run(ctx context.Context) {
	defer r.releasePending()
	defer r.out.End()
	failed, lost := r.exchange(ctx)
	if _, list := listKinds[r.q.Method]; list && lost { // see listOver
		failed, _ = r.exchange(ctx)
	}
	if failed != nil {
		r.answer = Answer{Error: failed}
	}
}

// exchange sets the answer, or returns an error object. Lost reports whether the link ended before the answer.
func (r *relayedRequest) exchange(ctx context.Context) (failed jsontext.Value, lost bool) {
	g, q, server, within := r.gateway, r.q, r.server, upstreamContext(ctx, r.server)
	l, err := g.linkTo(within, q, server)
	if err != nil {
		return unreachable(server.Name, err), false
	}
	defer l.release()
	if r.pending != nil {
		l.assign(r.pending)
		defer l.unassign(r.pending)
	}
	level := g.levelFor(within, q, l)
	params := r.params
	state, failed := g.openState(q, server, r.target, readInput(params))
	if failed != nil {
		return failed, false
	}
	if state != nil {
		if params, err = wire.Set(params, "requestState", state); err != nil {
			return invalid(wire.InvalidParams, "the params cannot be read"), false
		}
	}
	if params = wire.StripMeta(params); !server.Expose.Has(ExposeProgress) {
		params = wire.StripProgressToken(params)
	}
	params = withLevel(params, level)
	var rounds ask.Rounds
	defer rounds.End(g.table, q.From)
	for {
		r.setAnswer(r.request(within, l, params, level))
		if !r.answer.Native {
			return nil, l.Retired()
		}
		input, asks, code, why := r.askSession(ctx, &rounds)
		if !asks {
			return nil, false
		}
		if code == "" {
			if params, err = input.addTo(params); err == nil {
				continue
			}
			code = CodeInputRefused
		}
		return inputRefused(server, code, why), false
	}
}

// request makes one request of the server.
func (r *relayedRequest) request(ctx context.Context, l *link, params jsontext.Value, level severity) Answer {
	g, q, server := r.gateway, r.q, r.server
	if g.record(ctx, q.From, server.Name, ToServer, q.Method, params) != nil {
		return Answer{Error: ask.NotRecorded}
	}
	watching := q.Method == methodSubscribe || q.Method == methodUnsubscribe
	if watching && l.Modern() {
		return g.subscribe(ctx, q, l)
	}
	reply, err := l.Request(ctx, q.Method, params, func(m wire.Message) { g.relayDuring(ctx, q, l, r.out, level, m) })
	switch {
	case err != nil:
		return Answer{Error: unreachable(server.Name, err)}
	case reply.Error != nil:
		return Answer{Error: g.options.Mask(reply.Error)}
	}
	if uri, err := wire.Text(wire.Member(params, "uri")); watching && err == nil {
		q.session.setWatch(server.Name, uri, q.Method == methodSubscribe) // the next link subscribes again
		l.keepWatched()
	}
	return Answer{Result: g.options.Mask(reply.Result), Native: true}
}

// Respond answers a request of the client with the server's answer.
func (r *relayedRequest) Respond(request *session.Request) []byte {
	q, _ := r.gateway.newRequest(request)
	defer q.release()
	return r.respond(q)
}

func (r *relayedRequest) respond(q *request) []byte {
	switch {
	case r.answer.Error != nil:
		return q.relayError(r.server, r.answer.Error)
	case !r.answer.Native:
		return q.result(r.answer.Result)
	}
	message, code, why := r.relayResult(q, cacheable(q.Method))
	if code != "" {
		return q.fail(inputRefused(r.server, code, why))
	}
	return message
}

// cacheable reports whether a method's result says in the stateless revisions how long it may be kept.
func cacheable(method string) bool {
	switch method {
	case "resources/list", "resources/templates/list", "resources/read", "prompts/list":
		return true
	}
	return false
}

// record records a message that is about to pass.
func (g *Gateway) record(ctx context.Context, client Identity, server, direction, method string, params jsontext.Value) error {
	if g.options.Passed == nil {
		return nil
	}
	err := g.options.Passed(ctx, Passed{Identity: client, Server: server, Direction: direction, Method: method, Params: params})
	if err != nil {
		g.options.Log.Error("a message did not pass because it could not be recorded", "server", server, "method", method, "error", err.Error())
	}
	return err
}

// relayClientNotification relays a notification of a session's client to the servers.
func (g *Gateway) relayClientNotification(ctx context.Context, q *request, m *method) {
	s := q.session
	if s == nil {
		return
	}
	params := wire.StripMeta(q.Params)
	if m.name == "notifications/progress" {
		s.requests.Progress(ctx, params)
		return
	}
	if !s.capabilities.Roots {
		return
	}
	for _, l := range s.links.working(q.endpoint.exposing(m.needs)) {
		if g.record(ctx, q.From, l.server.Name, ToServer, m.name, params) == nil {
			_ = l.Notify(ctx, m.name, params) // a server that cannot be told has lost its link
		}
	}
}
