package gateway

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// connectWait bounds how long a client of all servers waits for servers with unknown capabilities.
// Clients can later use the offers of a server that missed it, although they were not told of them.
const connectWait = 2 * time.Second

// codeBusy is the error code if too many sessions are open.
const codeBusy = -32000

// initialize opens a session.
func (g *Gateway) initialize(ctx context.Context, q *request) []byte {
	if q.session != nil {
		return q.answerErrorf(wire.InvalidRequest, "the session has begun already")
	}
	offered := wire.TextMember(q.Params, "protocolVersion")
	if offered == "" {
		return q.answerErrorf(wire.InvalidParams, `"protocolVersion" is missing`)
	}

	revision := session.StatefulRevisions[0]
	if slices.Contains(session.StatefulRevisions, offered) {
		revision = offered
	}

	q.capabilities = readCapabilities(wire.Member(q.Params, "capabilities"))
	s, err := g.openSession(q, revision, q.capabilities)
	if err != nil {
		return q.answerErrorf(codeBusy, "%v", err)
	}

	q.session, q.Session, q.Protocol = s, s.Session, revision

	var b wire.Object
	b.Add("protocolVersion", wire.Quote(revision))
	b.Add("capabilities", g.serverCapabilities(ctx, q))
	b.Add("serverInfo", infoOf(g.options.Info))

	return q.answerRawResult(b.Value())
}

// discover answers server/discover.
func (g *Gateway) discover(ctx context.Context, q *request) []byte {
	var b wire.Object
	b.Add("supportedVersions", wire.Texts(session.Revisions()))
	b.Add("capabilities", g.serverCapabilities(ctx, q))
	b.Add("ttlMs", strconv.AppendInt(nil, q.config().MaxAge.Milliseconds(), 10))
	b.Add("cacheScope", []byte(`"private"`))
	return q.answerResult(b.Value())
}

// infoOf encodes a name and a version.
func infoOf(info upstream.Info) jsontext.Value {
	var b wire.Object
	b.Add("name", wire.Quote(info.Name))
	b.Add("version", wire.Quote(info.Version))
	return b.Value()
}

// serverCapabilities returns the capabilities that the client of an endpoint is told. A single
// server is connected now. For several servers, known offers are used, and the others get
// connectWait to connect.
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
	tools := len(q.endpoint.serversExposing(ExposeTools)) > 0
	return together.asObject(tools, tools && g.options.Tasks)
}

// offersOf returns the offers of several servers to the client of a request, one for each. It
// connects to servers with unknown offers, or to all if connect is set. A server that cannot be
// reached keeps its previous offers.
func (g *Gateway) offersOf(ctx context.Context, q *request, servers []*server, connect bool) []offers {
	found, _ := askServers(servers, func(s *server) (offers, error) {
		if !connect && s.Expose&^(ExposeTools|ExposeProgress|ExposeCancellation) == 0 {
			return 0, nil // the capabilities say nothing about these
		}
		// What one person's account is offered says nothing about another's.
		if state := s.currentState(); !connect && state.known && !s.Person {
			return state.offersTo(s, q.Protocol), nil
		}
		if l, err := g.linkTo(ctx, q, s); err == nil {
			defer l.release()
			return l.offersTo(q.Protocol), nil
		}
		if s.Person {
			return 0, nil
		}
		return s.currentState().offersTo(s, q.Protocol), nil
	})
	return found
}

// offers is the set of a server's features other than tools.
type offers uint8

const (
	offersLogging offers = 1 << iota
	offersCompletions
	offersPrompts
	offersPromptChanges // notifications that the list of prompts has changed
	offersResources
	offersResourceChanges
	offersSubscriptions // subscriptions to resources
)

func (o offers) includes(part offers) bool { return o&part != 0 }

// offersTo returns the offers of the link's server to a client of a revision.
func (l *link) offersTo(protocol string) offers {
	return readOffers(l.ServerInfo().Capabilities).exposed(l.server, l.Modern(), protocol)
}

// offersTo returns the server's offers to a client of a revision, as of the last connection.
func (s serverState) offersTo(server *server, protocol string) offers {
	return s.offers.exposed(server, s.stateless, protocol)
}

// exposed returns those of a server's offers that the operator exposes and the gateway can pass to
// a client of a revision.
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
	if !server.separatesSessions() || stateless != (protocol >= session.Stateless) {
		o &^= offersSubscriptions
	}
	if stateless && protocol < session.Stateless {
		o &^= offersPromptChanges | offersResourceChanges
	}
	return o
}

// asObject encodes the offers as server capabilities.
func (o offers) asObject(tools, tasks bool) jsontext.Value {
	var b wire.Object
	b.AddIf(o.includes(offersCompletions), "completions", `{}`)
	b.AddIf(tasks, "extensions", `{"`+extensionTasks+`":{}}`)
	b.AddIf(o.includes(offersLogging), "logging", `{}`)
	if o.includes(offersPrompts) {
		var in wire.Object
		in.AddIf(o.includes(offersPromptChanges), "listChanged", `true`)
		b.Add("prompts", in.Value())
	}
	if o.includes(offersResources) {
		var in wire.Object
		in.AddIf(o.includes(offersResourceChanges), "listChanged", `true`)
		in.AddIf(o.includes(offersSubscriptions), "subscribe", `true`)
		b.Add("resources", in.Value())
	}
	b.AddIf(tools, "tools", `{"listChanged":true}`)
	return b.Value()
}

// readOffers reads the offers from the capabilities of a server.
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
