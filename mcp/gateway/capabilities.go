package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/wire"
)

// offers are what a server offers beside tools, as a set.
type offers uint8

const (
	offersLogging offers = 1 << iota
	offersCompletions
	offersPrompts
	offersPromptChanges // notifications of changes of its list
	offersResources
	offersResourceChanges
	offersSubscriptions // to resources
)

func (o offers) has(part offers) bool { return o&part != 0 }

// exposed are the offers that the operator exposes.
func (o offers) exposed(e Expose) offers {
	for _, part := range []struct {
		needs  Expose
		offers offers
	}{
		{ExposeLogging, offersLogging},
		{ExposeCompletion, offersCompletions},
		{ExposePrompts, offersPrompts | offersPromptChanges},
		{ExposeResources, offersResources | offersResourceChanges | offersSubscriptions},
	} {
		if !e.Has(part.needs) {
			o &^= part.offers
		}
	}
	return o
}

// capabilities is what the client is told.
func (o offers) capabilities(tools, tasks bool) jsontext.Value {
	var b wire.Object
	b.AddIf(o.has(offersCompletions), "completions", `{}`)
	b.AddIf(tasks, "extensions", `{"`+ask.ExtensionTasks+`":{}}`)
	b.AddIf(o.has(offersLogging), "logging", `{}`)
	if o.has(offersPrompts) {
		var in wire.Object
		in.AddIf(o.has(offersPromptChanges), "listChanged", `true`)
		b.Add("prompts", in.Done())
	}
	if o.has(offersResources) {
		var in wire.Object
		in.AddIf(o.has(offersResourceChanges), "listChanged", `true`)
		in.AddIf(o.has(offersSubscriptions), "subscribe", `true`)
		b.Add("resources", in.Done())
	}
	b.AddIf(tools, "tools", `{"listChanged":true}`)
	return b.Done()
}

// readOffers reads the capabilities of a server.
func readOffers(doc jsontext.Value) (o offers) {
	wire.Each(doc, func(p wire.Piece) {
		if p.Value[0] != '{' {
			return
		}
		has := func(member string, part offers) {
			wire.Each(p.Value, func(in wire.Piece) {
				if in.Name == member && string(in.Value) == "true" {
					o |= part
				}
			})
		}
		switch p.Name {
		case "logging":
			o |= offersLogging
		case "completions":
			o |= offersCompletions
		case "prompts":
			o |= offersPrompts
			has("listChanged", offersPromptChanges)
		case "resources":
			o |= offersResources
			has("listChanged", offersResourceChanges)
			has("subscribe", offersSubscriptions)
		}
	})
	return o
}

// offers are what the link's server offers and the operator exposes.
func (l *link) offers() offers { return l.server.offers(readOffers(l.Hello().Capabilities)) }

// offers is what the operator exposes of what the server offers.
func (s *server) offers(o offers) offers {
	if o = o.exposed(s.Expose); !s.separate() {
		o &^= offersSubscriptions
	}
	return o
}

// offersNow connects to a server, if need be, and returns what it offers; none if it cannot be reached.
func (g *Gateway) offersNow(ctx context.Context, q *request, s *server) (o offers, reached bool) {
	l, err := g.linkTo(ctx, q, s)
	if err != nil {
		return 0, false
	}
	defer l.release()
	return l.offers(), true
}

// offered is what the servers of the endpoint offer and the operator exposes. A server that cannot be reached offers nothing. A single
// server is asked now; of several, what is known is taken, and the others have connectWait.
func (g *Gateway) offered(ctx context.Context, q *request) (all offers) {
	if s := q.endpoint.server; s != nil {
		all, _ = g.offersNow(ctx, q, s)
		return all
	}
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	found := make([]offers, len(q.endpoint.servers))
	var wg sync.WaitGroup
	for i, s := range q.endpoint.servers {
		if s.Expose&^(ExposeTools|ExposeProgress|ExposeCancellation) == 0 {
			continue // the client is told nothing about these
		}
		if o, known := g.pool.offersOf(s); known {
			found[i] = s.offers(o)
			continue
		}
		wg.Go(func() { found[i], _ = g.offersNow(ctx, q, s) })
	}
	wg.Wait()
	for _, o := range found {
		all |= o
	}
	return all
}

// connectWait bounds how long a client of all servers waits for servers whose capabilities are unknown. Clients can use what a server offers
// later, although they were not told of it.
const connectWait = 2 * time.Second

func (g *Gateway) capabilities(ctx context.Context, q *request) jsontext.Value {
	tools := len(q.endpoint.exposing(ExposeTools)) > 0
	return g.offered(ctx, q).capabilities(tools, tools && g.options.Tasks)
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
	wire.Each(wire.Find(q.Params, "_meta"), func(p wire.Piece) {
		switch p.Name {
		case metaCapabilities:
			q.declared.capabilities = ask.ReadCapabilities(p.Value)
		case metaLogLevel:
			word, _ := wire.Text(p.Value)
			q.declared.logLevel = severityOf(word)
		}
	})
}
