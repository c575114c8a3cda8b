package gateway

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

// Bounds of a list of one server.
const (
	maxListPages = 100
	maxListItems = 10_000
	maxListBytes = 8 << 20
)

// listKinds are the relayed lists: the member with the elements, the key of an element, and the notification of a change.
var listKinds = map[string]struct{ member, key, note string }{
	"resources/list":           {"resources", "uri", noteResources},
	"resources/templates/list": {"resourceTemplates", "uriTemplate", noteResources},
	"prompts/list":             {"prompts", "name", notePrompts},
}

// A serverList is a list of one server, in its order.
type serverList struct {
	at    time.Time
	items []listItem
}

func (l *serverList) has(key string) bool {
	return l != nil && slices.ContainsFunc(l.items, func(i listItem) bool { return i.key == key })
}

type listItem struct {
	key string
	raw jsontext.Value
}

// A listCache keeps the last lists of a link, by method.
type listCache struct {
	mu    sync.Mutex
	lists map[string]*serverList
}

func (k *listCache) get(method string, maxAge time.Duration) *serverList {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.lists[method]; l != nil && time.Since(l.at) < maxAge {
		return l
	}
	return nil
}

func (k *listCache) put(method string, l *serverList) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lists == nil {
		k.lists = make(map[string]*serverList)
	}
	k.lists[method] = l
}

// forget drops the lists that a notification says have changed.
func (k *listCache) forget(note string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for method, kind := range listKinds { // in any order: each list of the notification is dropped
		if kind.note == note {
			delete(k.lists, method)
		}
	}
}

// fetchList asks a server for all pages of a list. A server without the method has an empty list.
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
		result := wire.StripOwn(l.gateway.options.Mask(reply.Result))
		var next jsontext.Value
		readable := wire.Each(result, func(p wire.Piece) {
			switch {
			case p.Name == kind.member:
				wire.Items(p.Value, func(raw jsontext.Value, _ int) {
					if key := wire.TextMember(raw, kind.key); key != "" { // clients reject a whole list for a malformed entry
						out.items = append(out.items, listItem{key, raw})
					}
				})
			case p.Name == "nextCursor" && p.Value[0] == '"' && (l.Modern() || string(p.Value) != `""`): // see [upstream.Link.Listing]
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
		params = wire.Single("cursor", next)
	}
	return nil, fmt.Errorf("its answer to %s has more than %d pages", method, maxListPages)
}

// listOf is a list of a server that is younger than maxAge.
func (g *Gateway) listOf(ctx context.Context, q *request, server *server, method string, maxAge time.Duration) (*serverList, error) {
	return listOver(ctx, g, q, server, func(l *link) (*serverList, error) {
		if cached := l.lists.get(method, maxAge); cached != nil {
			return cached, nil
		}
		return l.fetchList(ctx, method)
	})
}

// listsOf asks several servers for a list, concurrently. The list of a failing server is nil. The error object is that of [noRoom].
func (g *Gateway) listsOf(ctx context.Context, q *request, servers []*server, method string, maxAge time.Duration) ([]*serverList, jsontext.Value) {
	out, errs := make([]*serverList, len(servers)), make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() {
			l, err := g.listOf(ctx, q, s, method, maxAge)
			if err != nil {
				g.options.Log.Warn("a list was left out", "server", s.Name, "method", method, "error", err.Error())
				errs[i] = err
				return
			}
			out[i] = l
		})
	}
	wg.Wait()
	return out, noRoom(servers, errs)
}

// listAll answers with the lists of all servers as one, without those of failing servers.
func (g *Gateway) listAll(ctx context.Context, q *request, m *method) []byte {
	if failed := noCursor(q.Params); failed != nil {
		return q.fail(failed)
	}
	servers := q.endpoint.exposing(m.needs)
	for _, s := range servers {
		if g.record(ctx, q.From, s.Name, ToServer, q.Method, wire.StripMeta(q.Params)) != nil {
			return q.fail(ask.NotRecorded)
		}
	}
	lists, failed := g.listsOf(ctx, q, servers, m.name, 0)
	if failed != nil {
		return q.fail(failed)
	}
	kind := listKinds[m.name]
	var all []jsontext.Value
	for i, l := range lists {
		if l == nil {
			continue
		}
		for _, it := range l.items {
			raw := it.raw
			if m.name == "prompts/list" {
				raw = renamed(raw, policy.JoinedName(servers[i].Name, it.key))
			}
			if raw != nil {
				all = append(all, raw)
			}
		}
	}
	var b wire.Object
	b.Add(kind.member, wire.Array(all))
	if q.stateless() {
		b.Add("ttlMs", []byte("0"))
		b.Add("cacheScope", []byte(`"private"`))
	}
	return q.result(b.Done())
}

// renamed is an object with another name. Every other byte stays. It is nil if the name is too long for clients.
func renamed(raw jsontext.Value, name string) jsontext.Value {
	if len(name) > policy.MaxJoinedName {
		return nil
	}
	var edits []wire.Edit
	wire.Each(raw, func(p wire.Piece) {
		if p.Name == "name" {
			edits = append(edits, wire.Edit{At: p.At, Length: len(p.Value), With: wire.Quote(name)})
		}
	})
	return wire.Splice(raw, nil, edits)
}

// noCursor refuses a cursor: a combined list has one page.
func noCursor(params jsontext.Value) jsontext.Value {
	if c := wire.Member(params, "cursor"); c != nil && c.Kind() != 'n' {
		return invalid(wire.InvalidParams, "the cursor is not one of this list, which has one page")
	}
	return nil
}
