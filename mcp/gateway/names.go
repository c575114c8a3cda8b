package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// joint stands between the server and the name of a tool or prompt where clients come to all servers. It stands in no server's
// name, but in any number of tools'.
const nameSeparator = "__"

// maxName is the longest name of a tool that clients take.
const maxName = 128

// joined is a server's name for something as clients of all servers know it.
func joinedName(server *Server, name string) string { return server.Name + nameSeparator + name }

// A candidate is a server and what a joined name would be there.
type candidate struct {
	server *Server
	name   string
}

// candidates are all readings of a joined name, in the operator's order. A name is never split: of the configured servers' names
// each is held against it, and if there is more than one reading, what the servers list decides.
func candidates(servers []*Server, name string) (out []candidate) {
	if len(name) > maxName {
		return nil
	}
	for _, s := range servers {
		if rest, ok := strings.CutPrefix(name, s.Name+nameSeparator); ok && rest != "" {
			out = append(out, candidate{s, rest})
		}
	}
	return out
}

// A catalog is one listing of a server's tools, by name.
type catalog struct {
	kept  *upstream.Kept
	tools map[string]jsontext.Value
}

// catalogs keeps the last catalog of a line.
type catalogCache struct{ last atomic.Pointer[catalog] }

func (c *catalogCache) of(kept *upstream.Kept) *catalog {
	if last := c.last.Load(); last != nil && last.kept == kept {
		return last
	}
	now := &catalog{kept: kept, tools: make(map[string]jsontext.Value)}
	for _, page := range kept.Pages {
		wire.Each(page, func(p wire.Piece) { // what cannot be read is no tool
			if p.Name == "tools" {
				wire.Items(p.Value, func(item jsontext.Value, _ int) { now.tools[textMember(item, "name")] = item })
			}
		})
	}
	c.last.Store(now)
	return now
}

// catalogOf lists a server's tools, if what is kept is too old.
func (g *Gateway) catalogOf(ctx context.Context, q *request, server *Server) (*catalog, error) {
	l, err := g.linkTo(ctx, q, server)
	if err != nil {
		return nil, err
	}
	defer l.release()
	kept, err := l.Listing(ctx, g.options.MaxAge)
	if err != nil {
		return nil, err
	}
	return l.tools.of(kept), nil
}

// resolve finds the server and the native name of a tool that a client of all servers names. The error object says that there is
// none, or more than one.
func (g *Gateway) resolveTool(ctx context.Context, q *request, name string) (*Server, string, jsontext.Value) {
	var found, down []candidate
	all := candidates(q.endpoint.exposing(ExposeTools), name)
	for _, c := range all {
		switch catalog, err := g.catalogOf(ctx, q, c.server); {
		case err != nil:
			down = append(down, c)
		case catalog.tools[c.name] != nil:
			found = append(found, c)
		}
	}
	switch {
	case len(found) == 1:
		return found[0].server, found[0].name, nil
	case len(found) == 0 && len(down) == 1: // it can be no other's; that it is down is for the machine to say
		return down[0].server, down[0].name, nil
	case len(found) == 0 && len(down) == 0 && len(all) > 0: // that nobody has it is for the machine to say too, and as it may be said
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

// Bounds of lists that are put together from those of several servers.
const (
	maxListPages = 100
	maxListItems = 10_000
	maxListBytes = 8 << 20
)

// listKinds are the lists that are passed on: the member that holds them, and how an element is known.
var listKinds = map[string]struct{ member, key, note string }{
	"resources/list":           {"resources", "uri", noteResources},
	"resources/templates/list": {"resourceTemplates", "uriTemplate", noteResources},
	"prompts/list":             {"prompts", "name", notePrompts},
}

// A listing is what a server listed, in its order.
type serverList struct {
	at    time.Time
	items []listItem
}

type listItem struct {
	key string
	raw jsontext.Value
}

func (l *serverList) has(key string) bool {
	return l != nil && slices.ContainsFunc(l.items, func(i listItem) bool { return i.key == key })
}

// lists keeps what a line's server listed last, by method.
type listCache struct {
	mu   sync.Mutex
	kept map[string]*serverList
}

func (k *listCache) get(method string, maxAge time.Duration) *serverList {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.kept[method]; l != nil && time.Since(l.at) < maxAge {
		return l
	}
	return nil
}

func (k *listCache) put(method string, l *serverList) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil {
		k.kept = make(map[string]*serverList)
	}
	k.kept[method] = l
}

// changed forgets the lists that a server says have changed.
func (k *listCache) forget(note string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for method, kind := range listKinds { // in any order: each that the note is about goes
		if kind.note == note {
			delete(k.kept, method)
		}
	}
}

// list asks a server for a list, all its pages. A server that says that it has nothing of the kind has an empty one.
func (l *link) fetchList(ctx context.Context, method string) (*serverList, error) {
	kind := listKinds[method]
	out := &serverList{at: time.Now()}
	var params jsontext.Value
	size := 0
	for range maxListPages {
		reply, err := l.Request(ctx, method, params, nil)
		if err != nil {
			return nil, err
		}
		if reply.Error != nil {
			if len(out.items) == 0 && string(wire.Member(reply.Error, "code")) == "-32601" {
				return out, nil
			}
			return nil, fmt.Errorf("it answered %s with an error", method)
		}
		result := StripOwn(l.gateway.options.Mask(reply.Result))
		var next jsontext.Value
		readable := wire.Each(result, func(p wire.Piece) {
			switch {
			case p.Name == kind.member:
				wire.Items(p.Value, func(raw jsontext.Value, _ int) { out.items = append(out.items, listItem{textMember(raw, kind.key), raw}) })
			case p.Name == "nextCursor" && p.Value[0] == '"':
				next = p.Value
			}
		})
		if size += len(result); !readable || size > maxListBytes || len(out.items) > maxListItems {
			return nil, fmt.Errorf("its answer to %s cannot be used, or is too large", method)
		}
		if next == nil {
			l.lists.put(method, out)
			return out, nil
		}
		params = slices.Concat(jsontext.Value(`{"cursor":`), next, jsontext.Value(`}`))
	}
	return nil, fmt.Errorf("its answer to %s has more than %d pages", method, maxListPages)
}

// listedAt is a server's list, asked for anew unless one younger than maxAge is kept.
func (g *Gateway) listOf(ctx context.Context, q *request, server *Server, method string, maxAge time.Duration) (*serverList, error) {
	l, err := g.linkTo(ctx, q, server)
	if err != nil {
		return nil, err
	}
	defer l.release()
	if kept := l.lists.get(method, maxAge); kept != nil {
		return kept, nil
	}
	return l.fetchList(ctx, method)
}

// listedBy asks several servers for a list, at once. One that fails has none.
func (g *Gateway) listsOf(ctx context.Context, q *request, servers []*Server, method string, maxAge time.Duration) []*serverList {
	out := make([]*serverList, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() {
			l, err := g.listOf(ctx, q, s, method, maxAge)
			if err != nil {
				g.options.Log.Warn("a list was left out", "server", s.Name, "method", method, "error", err.Error())
				return
			}
			out[i] = l
		})
	}
	wg.Wait()
	return out
}
