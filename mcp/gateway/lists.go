package gateway

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

// Bounds of a list of one server.
const (
	maxListPages = 100
	maxListBytes = 8 << 20
	maxListItems = 10_000
)

// listKinds describes the relayed lists: the member with the elements, the key of an element, and
// the notification of a change.
var listKinds = map[string]struct{ member, key, note string }{
	"resources/list":           {"resources", "uri", noteResources},
	"resources/templates/list": {"resourceTemplates", "uriTemplate", noteResources},
	"prompts/list":             {"prompts", "name", notePrompts},
}

// answerList answers with a page of one server's list, or with the joined lists of all servers. It
// leaves out the lists of failing servers.
func (g *Gateway) answerList(ctx context.Context, q *request, m *method) []byte {
	if q.endpoint.server != nil {
		return g.relayTo(ctx, q, q.endpoint.server, q.Params)
	}
	if failed := refuseCursor(q.Params); failed != nil {
		return q.answerError(failed)
	}

	servers := q.endpoint.serversExposing(m.needs)
	for _, s := range servers {
		if g.recordPassed(ctx, q.From, s.Name, ToServer, q.Method, wire.StripMeta(q.Params)) != nil {
			return q.answerError(notRecorded)
		}
	}

	lists, failed := g.serverLists(ctx, q, servers, m.name, 0)
	if failed != nil {
		return q.answerError(failed)
	}

	kind := listKinds[m.name]
	var items []jsontext.Value

	for i, l := range lists {
		for _, item := range l.items {
			if m.name != "prompts/list" {
				items = append(items, item.raw)
				continue
			}
			if name := policy.JoinedName(servers[i].Name, item.key); len(name) <= policy.MaxJoinedName {
				items = append(items, withName(item.raw, name))
			}
		}
	}

	var b wire.Object
	b.Add(kind.member, wire.Array(items))
	if q.stateless() {
		b.Add("ttlMs", []byte("0"))
		b.Add("cacheScope", []byte(`"private"`))
	}

	return q.answerResult(b.Value())
}

// A serverList holds a list of one server, in the server's order.
type serverList struct {
	at    time.Time
	items []listItem
}

type listItem struct {
	key string
	raw jsontext.Value
}

// contains reports whether the key of any element matches.
func (l *serverList) contains(matches func(key string) bool) bool {
	return slices.ContainsFunc(l.items, func(i listItem) bool { return matches(i.key) })
}

// serverLists requests a list from several servers, unless a list younger than maxAge is cached.
// The list of a failing server is empty.
func (g *Gateway) serverLists(ctx context.Context, q *request, servers []*server, method string,
	maxAge time.Duration) ([]*serverList, jsontext.Value) {
	return askServers(servers, func(s *server) (list *serverList, err error) {
		err = g.useLink(ctx, q, s, true, func(l *link) (err error) {
			if list = l.cachedList(method, maxAge); list == nil {
				list, err = l.fetchList(ctx, method)
			}
			return err
		})
		if err != nil {
			g.options.Log.Warn("a list was left out", "server", s.Name, "method", method, "error", err.Error())
			return &serverList{}, err
		}
		return list, nil
	})
}

// fetchList requests all pages of a list from a server. A server without the method has an empty
// list.
func (l *link) fetchList(ctx context.Context, method string) (*serverList, error) {
	list := &serverList{at: time.Now()}
	var params jsontext.Value
	size := 0

	for range maxListPages {
		reply, err := l.Request(ctx, method, params, nil)
		if err != nil {
			return nil, err
		}
		if reply.Error != nil {
			if len(list.items) == 0 && string(wire.Member(reply.Error, "code")) == "-32601" {
				return list, nil
			}
			return nil, fmt.Errorf("it answered %s with an error", method)
		}

		// Secrets and personal data are removed before the list is cached, so no reader of the cache has them.
		clean, why := l.gateway.clean(l.server, reply.Result)
		if why != "" {
			return nil, fmt.Errorf("its answer to %s is withheld: %s", method, why)
		}
		result := wire.StripOwn(clean)
		next, ok := l.addPage(list, method, result)
		if size += len(result); !ok || size > maxListBytes || len(list.items) > maxListItems {
			return nil, fmt.Errorf("its answer to %s cannot be used, or is too large", method)
		}
		if next == nil {
			l.cacheList(method, list)
			return list, nil
		}
		params = wire.Single("cursor", next)
	}

	return nil, fmt.Errorf("its answer to %s has more than %d pages", method, maxListPages)
}

// addPage adds the elements of one page to a list, and returns the cursor of the
// next page; nil if there is none. It reports false if the page cannot be read.
func (l *link) addPage(list *serverList, method string, page jsontext.Value) (next jsontext.Value, ok bool) {
	kind := listKinds[method]
	ok = wire.ForEachMember(page, func(p wire.Piece) {
		switch {
		case p.Name == kind.member:
			wire.Items(p.Value, func(raw jsontext.Value, _ int) {
				// Clients reject a whole list for a malformed entry.
				if key := wire.TextMember(raw, kind.key); key != "" {
					list.items = append(list.items, listItem{key, raw})
				}
			})
		// See [upstream.Link.Listing].
		case p.Name == "nextCursor" && p.Value[0] == '"' && (l.Modern() || string(p.Value) != `""`):
			next = p.Value
		}
	})
	return next, ok
}

// cachedList returns the last list of a method if it is younger than maxAge; else nil.
func (l *link) cachedList(method string, maxAge time.Duration) *serverList {
	l.mu.Lock()
	defer l.mu.Unlock()
	if list := l.lists[method]; list != nil && time.Since(list.at) < maxAge {
		return list
	}
	return nil
}

func (l *link) cacheList(method string, list *serverList) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lists == nil {
		l.lists = make(map[string]*serverList)
	}
	l.lists[method] = list
}

// forgetLists drops the lists that, by a notification, have changed.
func (l *link) forgetLists(note string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for method, kind := range listKinds { // in any order: each list of the notification is dropped
		if kind.note == note {
			delete(l.lists, method)
		}
	}
}
