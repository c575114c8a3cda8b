package gateway

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/serverrequest"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// connectWait bounds how long a client of all servers waits for servers whose capabilities are unknown. Clients can use what a server offers
// later, although they were not told of it.
const connectWait = 2 * time.Second

// codeBusy is the error code if too many sessions are open.
const codeBusy = -32000

// initialize opens a session.
func (g *Gateway) initialize(ctx context.Context, q *request) []byte {
	if q.session != nil {
		return q.refuse(wire.InvalidRequest, "the session has begun already")
	}
	offered := wire.TextMember(q.Params, "protocolVersion")
	if offered == "" {
		return q.refuse(wire.InvalidParams, `"protocolVersion" is missing`)
	}
	revision := session.StatefulRevisions[0]
	if slices.Contains(session.StatefulRevisions, offered) {
		revision = offered
	}
	q.capabilities = serverrequest.ReadCapabilities(wire.Find(q.Params, "capabilities"))
	s, err := g.openSession(q, revision, q.capabilities)
	if err != nil {
		return q.refuse(codeBusy, "%v", err)
	}
	q.session, q.Session, q.Protocol = s, s.Session, revision

	var b wire.Object
	b.Add("protocolVersion", wire.Quote(revision))
	b.Add("capabilities", g.serverCapabilities(ctx, q))
	b.Add("serverInfo", infoOf(g.options.Info))
	return q.rawResult(b.Value())
}

// discover answers server/discover.
func (g *Gateway) discover(ctx context.Context, q *request) []byte {
	var b wire.Object
	b.Add("supportedVersions", wire.Texts(session.Revisions()))
	b.Add("capabilities", g.serverCapabilities(ctx, q))
	b.Add("ttlMs", strconv.AppendInt(nil, q.config().MaxAge.Milliseconds(), 10))
	b.Add("cacheScope", []byte(`"private"`))
	return q.result(b.Value())
}

// infoOf is a name and a version as JSON.
func infoOf(info upstream.Info) jsontext.Value {
	var b wire.Object
	b.Add("name", wire.Quote(info.Name))
	b.Add("version", wire.Quote(info.Version))
	return b.Value()
}

// serverCapabilities is what the client is told that the servers of the endpoint offer. A single server is asked now; of several, what is known
// is taken, and the others have connectWait.
func (g *Gateway) serverCapabilities(ctx context.Context, q *request) jsontext.Value {
	single := q.endpoint.server != nil
	if !single {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, connectWait)
		defer cancel()
	}
	var together offers
	for _, o := range g.offersOf(ctx, q, q.endpoint.servers, single) {
		together |= o
	}
	tools := len(q.endpoint.exposing(ExposeTools)) > 0
	return together.object(tools, tools && g.options.Tasks)
}

// offersOf is what each of several servers offers to the client of a request. Those of which it is unknown are connected to, or all if connect
// is set. A server that cannot be reached offers what it did before.
func (g *Gateway) offersOf(ctx context.Context, q *request, servers []*server, connect bool) []offers {
	found := make([]offers, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		if !connect && s.Expose&^(ExposeTools|ExposeProgress|ExposeCancellation) == 0 {
			continue // the client is told nothing about these
		}
		if state := s.currentState(); !connect && state.known {
			found[i] = state.offersTo(s, q.Protocol)
			continue
		}
		wg.Go(func() {
			if l, err := g.linkTo(ctx, q, s); err == nil {
				l.release()
				found[i] = l.offersTo(q.Protocol)
				return
			}
			found[i] = s.currentState().offersTo(s, q.Protocol)
		})
	}
	wg.Wait()
	return found
}

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

func (o offers) include(part offers) bool { return o&part != 0 }

// offersTo is what the link's server offers to a client of a revision.
func (l *link) offersTo(protocol string) offers {
	return readOffers(l.ServerInfo().Capabilities).exposed(l.server, l.Modern(), protocol)
}

// offersTo is what a server offered to a client of a revision when last connected.
func (s serverState) offersTo(server *server, protocol string) offers {
	return s.offers.exposed(server, s.stateless, protocol)
}

// exposed is what the operator exposes of a server's offers, and the gateway can pass to a client of a revision.
func (o offers) exposed(server *server, stateless bool, protocol string) offers {
	for _, part := range []struct {
		needs  Expose
		offers offers
	}{
		{ExposeLogging, offersLogging},
		{ExposeCompletion, offersCompletions},
		{ExposePrompts, offersPrompts | offersPromptChanges},
		{ExposeResources, offersResources | offersResourceChanges | offersSubscriptions},
	} {
		if !server.Expose.Includes(part.needs) {
			o &^= part.offers
		}
	}
	if !server.separate() || stateless != (protocol >= session.Stateless) {
		o &^= offersSubscriptions
	}
	if stateless && protocol < session.Stateless {
		o &^= offersPromptChanges | offersResourceChanges
	}
	return o
}

// object is the offers as the capabilities of a server.
func (o offers) object(tools, tasks bool) jsontext.Value {
	var b wire.Object
	b.AddIf(o.include(offersCompletions), "completions", `{}`)
	b.AddIf(tasks, "extensions", `{"`+serverrequest.ExtensionTasks+`":{}}`)
	b.AddIf(o.include(offersLogging), "logging", `{}`)
	if o.include(offersPrompts) {
		var in wire.Object
		in.AddIf(o.include(offersPromptChanges), "listChanged", `true`)
		b.Add("prompts", in.Value())
	}
	if o.include(offersResources) {
		var in wire.Object
		in.AddIf(o.include(offersResourceChanges), "listChanged", `true`)
		in.AddIf(o.include(offersSubscriptions), "subscribe", `true`)
		b.Add("resources", in.Value())
	}
	b.AddIf(tools, "tools", `{"listChanged":true}`)
	return b.Value()
}

// readOffers reads the capabilities of a server.
func readOffers(capabilities jsontext.Value) (o offers) {
	wire.ForEachMember(capabilities, func(p wire.Piece) {
		if p.Value[0] != '{' {
			return
		}
		addIf := func(member string, part offers) {
			if string(wire.Member(p.Value, member)) == "true" {
				o |= part
			}
		}
		switch p.Name {
		case "logging":
			o |= offersLogging
		case "completions":
			o |= offersCompletions
		case "prompts":
			o |= offersPrompts
			addIf("listChanged", offersPromptChanges)
		case "resources":
			o |= offersResources
			addIf("listChanged", offersResourceChanges)
			addIf("subscribe", offersSubscriptions)
		}
	})
	return o
}
