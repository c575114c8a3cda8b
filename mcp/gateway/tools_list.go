package gateway

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

// maxLeftOut bounds the tools that one log line names.
const maxLeftOut = 10

// listTools answers tools/list with the tools of all servers that the client may
// call, on one page. It leaves out the tools of a failing server.
func (g *Gateway) listTools(ctx context.Context, q *request) []byte {
	if failed := refuseCursor(q.Params); failed != nil {
		return q.answerError(failed)
	}

	servers := q.endpoint.serversExposing(ExposeTools)
	listings, failed := g.toolListings(ctx, q, servers)
	if failed != nil {
		return q.answerError(failed)
	}

	var tools []jsontext.Value
	age := time.Duration(0)

	for i, listed := range listings {
		listing := listed.CachedListing
		if listed.unconnected {
			tools, age = append(tools, connectTool(q, servers[i])), q.config().MaxAge
		}
		if listing == nil {
			continue
		}
		age = max(age, listing.Age(time.Now()))
		visible := q.config().Calls.Tools(listing, q.Identity)
		if servers[i].Person {
			visible = slices.DeleteFunc(visible, func(t Tool) bool { return t.Name == ConnectTool })
		}
		if q.endpoint.server == nil {
			tools = append(tools, g.joinedTools(q, servers[i], listing, visible)...)
			continue
		}
		for _, t := range visible {
			tools = append(tools, wire.StripOwn(t.Raw))
		}
	}

	var b wire.Object
	b.Add("tools", wire.Array(tools))
	if q.stateless() {
		b.Add("ttlMs", strconv.AppendInt(nil, max(0, q.config().MaxAge-age).Milliseconds(), 10))
		b.Add("cacheScope", []byte(`"private"`))
	}

	return q.answerResult(b.Value())
}

// A serverListing is the listing of one server; nil if the server failed.
type serverListing struct {
	*upstream.CachedListing
	unconnected bool // the client's person has no account at the server, or the server refuses it
}

// toolListings requests the tools of servers.
func (g *Gateway) toolListings(ctx context.Context, q *request, servers []*server) ([]serverListing,
	jsontext.Value) {
	return askServers(servers, func(s *server) (_ serverListing, err error) {
		var listing *upstream.CachedListing
		within := upstreamContext(ctx, s)
		err = g.useLink(within, q, s, true, func(l *link) (err error) {
			listing, err = l.Listing(within, q.config().MaxAge)
			return err
		})
		switch {
		case upstream.NeedsAccount(err), upstream.RefusesAccount(err):
			return serverListing{unconnected: true}, nil
		case err != nil:
			g.logUnlisted(ctx, s, err)
			return serverListing{}, err
		}
		s.changeState(func(state *serverState) { state.unlisted = false })
		return serverListing{CachedListing: listing}, nil
	})
}

// askServers calls ask for each server, concurrently, and returns the answers in the order of the
// servers. The error object says that the limit of sessions left no room for a server. Without it,
// clients would cache for long a list that is short only because others were using the gateway.
func askServers[T any](servers []*server, ask func(*server) (T, error)) (answers []T, noRoom jsontext.Value) {
	answers, errs := make([]T, len(servers)), make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { answers[i], errs[i] = ask(s) })
	}
	wg.Wait()
	for i, err := range errs {
		if tooManyLinks(err) {
			return nil, serverFailure(servers[i].Name, err)
		}
	}
	return answers, nil
}

// logUnlisted logs that a list lacks a server's tools. The first time it logs a warning, until the
// tools are listed again.
func (g *Gateway) logUnlisted(ctx context.Context, server *server, err error) {
	level := slog.LevelDebug
	if ctx.Err() == nil { // otherwise the client is gone
		former := server.changeState(func(s *serverState) { s.unlisted = true })
		if !former.unlisted && !former.down { // link.open has logged that the server is down
			level = slog.LevelWarn
		}
	}
	g.options.Log.Log(ctx, level, "a server's tools were left out", "server", server.Name, "error", err.Error())
}

// joinedTools returns the tools of one server for the list of all servers,
// under their joined names. Omitted tools are logged once for each listing.
func (g *Gateway) joinedTools(q *request, server *server, listing *upstream.CachedListing,
	shown []Tool) (tools []jsontext.Value) {
	var leftOut []string
	for _, t := range shown {
		name := policy.JoinedName(server.Name, t.Name)
		read, _ := q.endpoint.splitName(name, ExposeTools)
		switch {
		case t.SDKFaults != "" && !q.stateless(): // one such tool makes the client reject all tools
			leftOut = append(leftOut, t.Name+": "+t.SDKFaults)
		case len(name) > policy.MaxJoinedName:
			leftOut = append(leftOut, t.Name+": its name there is too long")
		case read != server:
			leftOut = append(leftOut, t.Name+": its name there is that of another server's tool")
		default:
			tools = append(tools, withName(wire.StripOwn(t.Raw), name))
		}
	}

	n := len(leftOut)
	if n == 0 {
		return tools
	}

	former := server.changeState(func(s *serverState) { s.leftOut = max(s.leftOut, listing.Number) })
	if listing.Number > former.leftOut {
		g.options.Log.Warn("tools were left out of the list of all servers; the list of their server has them",
			"server", server.Name,
			"count", n, "tools", strings.Join(leftOut[:min(n, maxLeftOut)], "; "))
	}

	return tools
}

// splitName returns the server in a joined name, and the server's own name of the tool or prompt.
// No server's name contains the separator, so the first one ends it. The server is nil if the
// endpoint has none of this name that exposes all of needs.
func (e *endpoint) splitName(joined string, needs Expose) (*server, string) {
	name, native, found := strings.Cut(joined, policy.JoinedName("", ""))
	if !found || native == "" || len(joined) > policy.MaxJoinedName {
		return nil, ""
	}
	for _, s := range e.servers {
		if s.Name == name && s.Expose.Includes(needs) {
			return s, native
		}
	}
	return nil, ""
}

// withName returns an object with another name. Every other byte stays.
func withName(raw jsontext.Value, name string) jsontext.Value {
	var edits []wire.Edit
	wire.ForEachMember(raw, func(p wire.Piece) {
		if p.Name == "name" {
			edits = append(edits, wire.Edit{At: p.At, Length: len(p.Value), With: wire.Quote(name)})
		}
	})
	return wire.Splice(raw, nil, edits)
}

// refuseCursor refuses a cursor: a list of the gateway has one page.
func refuseCursor(params jsontext.Value) jsontext.Value {
	if c := wire.Member(params, "cursor"); c != nil && c.Kind() != 'n' {
		return rpcError(wire.InvalidParams, "the cursor is not one of this list, which has one page")
	}
	return nil
}

// A Tool is one tool that a client may see.
type Tool struct {
	Name string
	Raw  jsontext.Value // the tool object, byte for byte as the server sent it, but for the operator's schema

	// SDKFaults says why the SDK in a client of a revision before 2026-07-28 rejects a list that
	// holds the tool. Empty: the SDK accepts it.
	SDKFaults string
}
