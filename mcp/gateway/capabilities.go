package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/wire"
)

// serverCapabilities are what a server offers beside tools.
type serverCapabilities struct {
	logging, completions        bool
	prompts, promptsChanged     bool
	resources, resourcesChanged bool // resourcesChanged: it announces changes of its list
	subscribe                   bool
}

// exposed are the capabilities that the operator exposes.
func (o serverCapabilities) exposed(e Expose) serverCapabilities {
	prompts, resources := e.Has(ExposePrompts), e.Has(ExposeResources)
	return serverCapabilities{
		logging: o.logging && e.Has(ExposeLogging), completions: o.completions && e.Has(ExposeCompletion),
		prompts: o.prompts && prompts, promptsChanged: o.promptsChanged && prompts,
		resources: o.resources && resources, resourcesChanged: o.resourcesChanged && resources, subscribe: o.subscribe && resources,
	}
}

func (o serverCapabilities) or(p serverCapabilities) serverCapabilities {
	return serverCapabilities{
		logging: o.logging || p.logging, completions: o.completions || p.completions,
		prompts: o.prompts || p.prompts, promptsChanged: o.promptsChanged || p.promptsChanged,
		resources: o.resources || p.resources, resourcesChanged: o.resourcesChanged || p.resourcesChanged, subscribe: o.subscribe || p.subscribe,
	}
}

// capabilities is what the client is told.
func (o serverCapabilities) capabilities(tools, tasks bool) jsontext.Value {
	var b wire.Object
	if o.completions {
		b.Add("completions", []byte(`{}`))
	}
	if tasks {
		b.Add("extensions", []byte(`{"`+ask.ExtensionTasks+`":{}}`))
	}
	if o.logging {
		b.Add("logging", []byte(`{}`))
	}
	if o.prompts {
		var in wire.Object
		in.AddIf(o.promptsChanged, "listChanged", `true`)
		b.Add("prompts", in.Done())
	}
	if o.resources {
		var in wire.Object
		in.AddIf(o.resourcesChanged, "listChanged", `true`)
		in.AddIf(o.subscribe, "subscribe", `true`)
		b.Add("resources", in.Done())
	}
	if tools {
		b.Add("tools", []byte(`{"listChanged":true}`))
	}
	return b.Done()
}

// readServerCapabilities reads the capabilities of a server.
func readServerCapabilities(doc jsontext.Value) (o serverCapabilities) {
	wire.Each(doc, func(p wire.Piece) {
		if p.Value[0] != '{' {
			return
		}
		yes := func(member string) (found bool) {
			wire.Each(p.Value, func(in wire.Piece) { found = found || in.Name == member && string(in.Value) == "true" })
			return found
		}
		switch p.Name {
		case "logging":
			o.logging = true
		case "completions":
			o.completions = true
		case "prompts":
			o.prompts, o.promptsChanged = true, yes("listChanged")
		case "resources":
			o.resources, o.resourcesChanged, o.subscribe = true, yes("listChanged"), yes("subscribe")
		}
	})
	return o
}

// offeredCapabilities are what the servers of the endpoint offer and the operator exposes. A server that cannot be reached offers nothing. A
// single server is asked now; of several, what is known is taken, and the others have connectWait.
func (g *Gateway) offeredCapabilities(ctx context.Context, q *request) (all serverCapabilities) {
	if s := q.endpoint.server; s != nil {
		if l, err := g.linkTo(ctx, q, s); err == nil {
			all = readServerCapabilities(l.Hello().Capabilities).exposed(s.Expose)
			l.release()
		}
		return all
	}
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	found := make([]serverCapabilities, len(q.endpoint.servers))
	var wg sync.WaitGroup
	for i, s := range q.endpoint.servers {
		if s.Expose&^(ExposeTools|ExposeProgress|ExposeCancellation) == 0 {
			continue // the client is told nothing about these
		}
		if o, ok := g.pool.capabilitiesOf(s.Name); ok {
			found[i] = o.exposed(s.Expose)
			continue
		}
		wg.Go(func() {
			if l, err := g.linkTo(ctx, q, s); err == nil {
				found[i] = readServerCapabilities(l.Hello().Capabilities).exposed(s.Expose)
				l.release()
			}
		})
	}
	wg.Wait()
	for _, o := range found {
		all = all.or(o)
	}
	return all
}

// connectWait bounds how long a client of all servers waits for servers whose capabilities are unknown. Clients can use what a server offers
// later, although they were not told of it.
const connectWait = 2 * time.Second

func (g *Gateway) capabilities(ctx context.Context, q *request) jsontext.Value {
	tools := len(q.endpoint.exposing(ExposeTools)) > 0
	return g.offeredCapabilities(ctx, q).capabilities(tools, tools && g.options.Tasks)
}

// capabilities are those that the client declared, with its session or with the request.
func (q *request) capabilities() ask.Capabilities {
	if q.session != nil {
		return q.session.capabilities
	}
	return q.declared.capabilities
}

// declaredMeta is what a stateless request declares in its _meta.
type declaredMeta struct {
	capabilities ask.Capabilities
	logLevel     severity // zero: the client wants no log
}

// readMeta reads the _meta of a stateless request.
func (q *request) readMeta() {
	wire.Each(q.Params, func(member wire.Piece) {
		name, value := member.Name, member.Value
		if name != "_meta" {
			return
		}
		wire.Each(value, func(member wire.Piece) {
			name, value := member.Name, member.Value
			switch name {
			case metaCapabilities:
				q.declared.capabilities = ask.ReadCapabilities(value)
			case metaLogLevel:
				word, _ := wire.Text(value)
				q.declared.logLevel = severityOf(word)
			}
		})
	})
}
