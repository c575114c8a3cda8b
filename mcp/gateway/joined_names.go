package gateway

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

// A candidate is one reading of a joined name.
type candidate struct {
	server *server
	name   string
}

// candidates are all readings of a joined name, in the operator's order. A name may have several, because it is compared with each server's
// name and not split. Then the servers' listings decide.
func candidates(servers []*server, name string) (out []candidate) {
	if len(name) > policy.MaxJoinedName {
		return nil
	}
	for _, s := range servers {
		if rest, ok := strings.CutPrefix(name, policy.JoinedName(s.Name, "")); ok && rest != "" {
			out = append(out, candidate{s, rest})
		}
	}
	return out
}

// A catalog is one listing of a server's tools, by name.
type catalog struct {
	listing *upstream.Kept
	tools   map[string]jsontext.Value
	leftOut sync.Once // logs which tools the list of all servers does not have
}

// catalogOf is the catalog of a listing of the link. The last one is kept.
func (l *link) catalogOf(listing *upstream.Kept) *catalog {
	if last := l.catalog.Load(); last != nil && last.listing == listing {
		return last
	}
	now := &catalog{listing: listing, tools: make(map[string]jsontext.Value)}
	for _, page := range listing.Pages {
		wire.Each(page, func(p wire.Piece) {
			if p.Name == "tools" {
				wire.Items(p.Value, func(item jsontext.Value, _ int) { now.tools[wire.TextMember(item, "name")] = item })
			}
		})
	}
	l.catalog.Store(now)
	return now
}

// catalogOf returns the tools of a server, from a listing that is younger than maxAge.
func (g *Gateway) catalogOf(ctx context.Context, q *request, server *server, maxAge time.Duration) (*catalog, error) {
	return listOver(ctx, g, q, server, func(l *link) (*catalog, error) {
		listing, err := l.Listing(ctx, maxAge)
		if err != nil {
			return nil, err
		}
		return l.catalogOf(listing), nil
	})
}

// resolveTool finds the server of a tool that a client of all servers names. The error object says that there is none, or more than one.
func (g *Gateway) resolveTool(ctx context.Context, q *request, name string) (*server, string, jsontext.Value) {
	var found, down []candidate
	all := candidates(q.endpoint.exposing(ExposeTools), name)
	for _, c := range all {
		switch catalog, err := g.catalogOf(ctx, q, c.server, q.config().MaxAge); {
		case err != nil:
			down = append(down, c)
		case catalog.tools[c.name] != nil:
			found = append(found, c)
		}
	}
	switch {
	case len(found) == 1:
		return found[0].server, found[0].name, nil
	case len(found) == 0 && len(down) == 1: // Calls reports that the server is down
		return down[0].server, down[0].name, nil
	case len(found) == 0 && len(down) == 0 && len(all) > 0: // Calls reports that no server has the tool
		return all[0].server, all[0].name, nil
	case len(found) > 1:
		return nil, "", invalid(wire.InvalidParams, "more than one server has a tool of this name, so it is nobody's: "+serversOf(found))
	}
	return nil, "", invalid(wire.InvalidParams, "there is no tool of this name; tools/list says which there are")
}

func serversOf(all []candidate) string {
	var names []string
	for _, c := range all {
		names = append(names, c.server.Name)
	}
	return strings.Join(names, ", ")
}
