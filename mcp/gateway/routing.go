package gateway

import (
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// notFound is the error code of older revisions for an unknown resource.
const notFound = -32002

// route finds the server of a request to all servers, and returns the params as that server knows them. The error object says that there is
// none, or more than one.
func (g *Gateway) route(ctx context.Context, q *request, m *method) (*server, jsontext.Value, jsontext.Value) {
	switch m.name {
	case "prompts/get":
		return g.routePrompt(ctx, q, m.needs, q.Params)
	case "completion/complete":
		return g.routeCompletion(ctx, q, m.needs)
	default: // resources
		uri, err := wire.Text(wire.Member(q.Params, "uri"))
		if err != nil {
			return nil, nil, invalid(wire.InvalidParams, `"uri" is not a string`)
		}
		server, failed := g.routeResource(ctx, q, uri)
		return server, q.Params, failed
	}
}

// routePrompt finds the server of a prompt by the joined name, and replaces that by the server's name.
func (g *Gateway) routePrompt(ctx context.Context, q *request, needs Expose, doc jsontext.Value) (*server, jsontext.Value, jsontext.Value) {
	name, err := wire.Text(wire.Member(doc, "name"))
	if err != nil {
		return nil, nil, invalid(wire.InvalidParams, `"name" is not a string`)
	}
	all := candidates(q.endpoint.exposing(needs), name)
	if len(all) > 1 {
		servers := make([]*server, len(all))
		for i, c := range all {
			servers[i] = c.server
		}
		lists, failed := g.listsOf(ctx, q, servers, "prompts/list", q.config().MaxAge)
		if failed != nil {
			return nil, nil, failed
		}
		var found []candidate
		for i, l := range lists {
			if l.has(all[i].name) {
				found = append(found, all[i])
			}
		}
		if all = found; len(all) > 1 {
			return nil, nil, invalid(wire.InvalidParams, "more than one server has a prompt of this name, so it is nobody's: "+serversOf(all))
		}
	}
	if len(all) == 0 {
		return nil, nil, invalid(wire.InvalidParams, "there is no prompt of this name; prompts/list says which there are")
	}
	native, err := wire.Set(doc, "name", wire.Quote(all[0].name))
	if err != nil {
		return nil, nil, invalid(wire.InvalidParams, "the params cannot be read")
	}
	return all[0].server, native, nil
}

// routeCompletion finds the server of a completion by the prompt or the template.
func (g *Gateway) routeCompletion(ctx context.Context, q *request, needs Expose) (*server, jsontext.Value, jsontext.Value) {
	ref := wire.Member(q.Params, "ref")
	kind, _ := wire.Text(wire.Member(ref, "type"))
	switch kind {
	case "ref/prompt":
		server, native, failed := g.routePrompt(ctx, q, needs, ref)
		if failed != nil {
			return nil, nil, failed
		}
		params, err := wire.Set(q.Params, "ref", native)
		if err != nil {
			return nil, nil, invalid(wire.InvalidParams, "the params cannot be read")
		}
		return server, params, nil
	case "ref/resource":
		uri, err := wire.Text(wire.Member(ref, "uri"))
		if err != nil {
			return nil, nil, invalid(wire.InvalidParams, `"uri" of "ref" is not a string`)
		}
		servers := q.endpoint.exposing(needs)
		if len(servers) == 1 {
			return servers[0], q.Params, nil
		}
		server, failed := g.resourceServer(ctx, q, servers, uri)
		return server, q.Params, failed
	}
	return nil, nil, invalid(wire.InvalidParams, `"ref" has no "type" that is known`)
}

// routeResource finds the server of a resource.
func (g *Gateway) routeResource(ctx context.Context, q *request, uri string) (*server, jsontext.Value) {
	servers := q.endpoint.exposing(ExposeResources)
	if len(servers) == 1 {
		return servers[0], nil // the server says whether it has the resource
	}
	return g.resourceServer(ctx, q, servers, uri)
}

// resourceServer finds the one server that lists a resource, or else a matching template.
func (g *Gateway) resourceServer(ctx context.Context, q *request, servers []*server, uri string) (*server, jsontext.Value) {
	lists, failed := g.listsOf(ctx, q, servers, "resources/list", q.config().MaxAge)
	if failed != nil {
		return nil, failed
	}
	var found []candidate
	for i, l := range lists {
		if l.has(uri) {
			found = append(found, candidate{servers[i], uri})
		}
	}
	if len(found) == 0 {
		if lists, failed = g.listsOf(ctx, q, servers, "resources/templates/list", q.config().MaxAge); failed != nil {
			return nil, failed
		}
		for i, l := range lists {
			if l != nil && slices.ContainsFunc(l.items, func(t listItem) bool { return matchesTemplate(t.key, uri) }) {
				found = append(found, candidate{servers[i], uri})
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0].server, nil
	case 0:
		code := int64(notFound)
		if q.stateless() {
			code = wire.InvalidParams
		}
		return nil, wire.ErrorObject(code, "no server has this resource", uriParams(uri))
	}
	return nil, invalid(wire.InvalidParams, "more than one server has this resource: "+serversOf(found)+"; read it at /servers/NAME/mcp")
}

// matchesTemplate reports whether a URI is a template, or begins with the template's text before its first variable. Without such text
// nothing matches.
func matchesTemplate(template, uri string) bool {
	prefix, _, variable := strings.Cut(template, "{")
	return template == uri || variable && prefix != "" && strings.HasPrefix(uri, prefix)
}
