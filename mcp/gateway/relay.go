package gateway

import (
	"context"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// relayRequest relays a request to its server.
func (g *Gateway) relayRequest(ctx context.Context, q *request, m *method) []byte {
	server, params, failed := g.routeRequest(ctx, q, m)
	if failed != nil {
		return q.answerError(failed)
	}
	return g.relayTo(ctx, q, server, params)
}

// relayTo relays a request to one server and returns the answer.
func (g *Gateway) relayTo(ctx context.Context, q *request, server *server, params jsontext.Value) []byte {
	reply, failed := g.askServer(upstreamContext(ctx, server), q, server, params)
	return g.answerReply(q, server, reply, failed)
}

// answerReply answers with the reply of a server. If there is none, failed says why.
func (g *Gateway) answerReply(q *request, server *server, reply upstream.Reply, failed jsontext.Value) []byte {
	switch {
	case failed != nil:
		return q.answerError(failed)
	case reply.Error != nil:
		clean, why := g.clean(server, reply.Error)
		if why != "" {
			return q.answerErrorf(wire.InternalError, "server %s: its error is withheld: %s", server.Name, why)
		}
		return q.relayError(server, clean)
	}

	clean, why := g.clean(server, reply.Result)
	if why != "" {
		return q.answerErrorf(wire.InternalError, "server %s: its result is withheld: %s", server.Name, why)
	}
	message, code, why := q.relayResult(server, q.Method, clean, nil, isCacheable(q.Method))
	if code != "" {
		return q.answerError(inputRefused(server, code, why))
	}
	return message
}

// clean removes secrets and personal data from what a server sends. If why is not empty, clients must not get
// it.
func (g *Gateway) clean(server *server, text []byte) (clean []byte, why string) {
	return g.options.Redact(server.Name, g.options.Mask(text))
}

// askServer sends a request to one server and waits for its reply. The error object says why there
// is none.
func (g *Gateway) askServer(ctx context.Context, q *request, server *server,
	params jsontext.Value) (reply upstream.Reply,
	failed jsontext.Value) {
	state, failed := q.openState(server, q.Method, readInput(params))
	if failed != nil {
		return reply, failed
	}

	// The server gets its own request state, which the gateway has sealed for this client.
	if state != nil {
		var err error
		if params, err = wire.Set(params, "requestState", state); err != nil {
			return reply, unreadableParams
		}
	}

	if params = wire.StripMeta(params); !server.Expose.Includes(ExposeProgress) {
		params = wire.StripProgressToken(params)
	}

	level := severity(0)
	if server.Expose.Includes(ExposeLogging) && q.Method != methodSetLevel {
		level = q.wantedLogLevel()
		params = withLevel(params, level)
	}

	_, isList := listKinds[q.Method]
	err := g.useLink(ctx, q, server, isList, func(l *link) (err error) {
		if level > 0 {
			l.setSharedLevel(ctx, level)
		}
		if err = g.recordPassed(ctx, q.From, server.Name, ToServer, q.Method, params); err != nil {
			return err
		}
		reply, err = l.Request(ctx, q.Method, params, func(m wire.Message) { l.relayDuring(ctx, q, level, m) })
		return err
	})
	if err != nil {
		return reply, serverFailure(server.Name, err)
	}

	return reply, nil
}

var unreadableParams = rpcError(wire.InvalidParams, "the params cannot be read")

// isCacheable reports whether, in the stateless revisions, a method's result says how long it may
// be cached.
func isCacheable(method string) bool {
	_, isList := listKinds[method]
	return isList || method == "resources/read"
}

// relayResponse passes the client's answer to the server that sent the request.
func (g *Gateway) relayResponse(ctx context.Context, q *request) {
	if q.session == nil {
		return
	}
	question := q.session.questions.removeQuestion(q.ID)
	if question == nil || question.link == nil {
		return
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	result, failed := q.Result, wire.StripOwn(q.Error)
	recorded := failed
	if failed == nil {
		recorded, result = result, wire.StripMeta(result)
	}
	if g.recordPassed(ctx, q.From, question.link.server.Name, ToServer, question.method, recorded) != nil {
		result, failed = nil, notRecorded
	}
	_ = question.link.Answer(ctx, question.id, result, failed) // on an error the server has lost its link
}

// relayClientNotification relays a notification of a session's client to the servers that may get
// it: roots/list_changed.
func (g *Gateway) relayClientNotification(ctx context.Context, q *request) {
	s, m := q.session, methodOf(fromClient, q.Method)
	if s == nil || m == nil || !m.notification || m.handler != byRelay || g.checkMethod(q, m) != nil ||
		!s.capabilities.roots {
		return
	}
	params := wire.StripMeta(q.Params)
	for _, l := range g.links.workingLinks(s, q.endpoint.serversExposing(m.needs)) {
		if !l.Modern() && g.recordPassed(ctx, q.From, l.server.Name, ToServer, m.name, params) == nil {
			_ = l.Notify(ctx, m.name, params) // on an error the server has lost its link
		}
	}
}

// notFound is the error code for an unknown resource in older revisions.
const notFound = -32002

// routeRequest finds the server of a request, and returns the params with the server's own
// names. The error object says that there is no server, or more than one.
func (g *Gateway) routeRequest(ctx context.Context, q *request, m *method) (*server, jsontext.Value, jsontext.Value) {
	if q.endpoint.server != nil {
		return q.endpoint.server, q.Params, nil
	}
	switch m.name {
	case "prompts/get":
		return routePrompt(q.endpoint, m.needs, q.Params)
	case "completion/complete":
		return g.routeCompletion(ctx, q, m.needs)
	default: // methods of resources
		uri, err := wire.Text(wire.Member(q.Params, "uri"))
		if err != nil {
			return nil, nil, rpcError(wire.InvalidParams, `"uri" is not a string`)
		}
		server, failed := g.routeResource(ctx, q, m.needs, uri)
		return server, q.Params, failed
	}
}

// routePrompt finds the server of a prompt by the joined name, and replaces that by the server's
// own name.
func routePrompt(e *endpoint, needs Expose, params jsontext.Value) (*server, jsontext.Value, jsontext.Value) {
	name, err := wire.Text(wire.Member(params, "name"))
	if err != nil {
		return nil, nil, rpcError(wire.InvalidParams, `"name" is not a string`)
	}
	server, prompt := e.splitName(name, needs)
	if server == nil {
		return nil, nil, rpcError(wire.InvalidParams,
			"there is no prompt of this name; prompts/list says which there are")
	}
	native, err := wire.Set(params, "name", wire.Quote(prompt))
	if err != nil {
		return nil, nil, unreadableParams
	}
	return server, native, nil
}

// routeCompletion finds the server of a completion by the prompt or the template.
func (g *Gateway) routeCompletion(ctx context.Context, q *request, needs Expose) (*server, jsontext.Value,
	jsontext.Value) {
	ref := wire.Member(q.Params, "ref")
	kind, _ := wire.Text(wire.Member(ref, "type"))

	switch kind {
	case "ref/prompt":
		server, native, failed := routePrompt(q.endpoint, needs, ref)
		if failed != nil {
			return nil, nil, failed
		}
		params, err := wire.Set(q.Params, "ref", native)
		if err != nil {
			return nil, nil, unreadableParams
		}
		return server, params, nil
	case "ref/resource":
		uri, err := wire.Text(wire.Member(ref, "uri"))
		if err != nil {
			return nil, nil, rpcError(wire.InvalidParams, `"uri" of "ref" is not a string`)
		}
		server, failed := g.routeResource(ctx, q, needs, uri)
		return server, q.Params, failed
	}

	return nil, nil, rpcError(wire.InvalidParams, `"ref" has no "type" that is known`)
}

// routeResource finds the one server that lists a resource, or else a matching template. At the
// endpoint of a single server, the server itself says whether it has the resource.
func (g *Gateway) routeResource(ctx context.Context, q *request, needs Expose, uri string) (*server, jsontext.Value) {
	servers := q.endpoint.serversExposing(needs)
	if len(servers) == 1 {
		return servers[0], nil
	}

	// A server that lists the resource itself wins over one with a matching template.
	var found []*server
	for _, search := range []struct {
		method  string
		matches func(key string) bool
	}{
		{"resources/list", func(key string) bool { return key == uri }},
		{"resources/templates/list", func(key string) bool { return matchesTemplate(key, uri) }},
	} {
		lists, failed := g.serverLists(ctx, q, servers, search.method, q.config().MaxAge)
		if failed != nil {
			return nil, failed
		}
		for i, l := range lists {
			if l.contains(search.matches) {
				found = append(found, servers[i])
			}
		}
		if len(found) > 0 {
			break
		}
	}

	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		code := int64(notFound)
		if q.stateless() {
			code = wire.InvalidParams
		}
		return nil, wire.ErrorObject(code, "no server has this resource", uriParams(uri))
	}

	var names []string
	for _, s := range found {
		names = append(names, s.Name)
	}

	return nil, rpcError(wire.InvalidParams,
		"more than one server has this resource: "+strings.Join(names, ", ")+"; read it at /servers/NAME/mcp")
}

// matchesTemplate reports whether a URI equals a template, or begins with the
// template's text before its first variable. Without such text nothing matches.
func matchesTemplate(template, uri string) bool {
	prefix, _, variable := strings.Cut(template, "{")
	return template == uri || variable && prefix != "" && strings.HasPrefix(uri, prefix)
}

func uriParams(uri string) jsontext.Value { return wire.Single("uri", wire.Quote(uri)) }
