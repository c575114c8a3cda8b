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

	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

// listTools answers tools/list with the tools of all servers that the client may call, on one page.
func (g *Gateway) listTools(ctx context.Context, q *request) []byte {
	if failed := noCursor(q.Params); failed != nil {
		return q.fail(failed)
	}
	all, age, failed := g.toolsOf(ctx, q, q.config().MaxAge)
	if failed != nil {
		return q.fail(failed)
	}
	q.noteListed(all)
	var b wire.Object
	b.Add("tools", wire.Array(all))
	if q.stateless() {
		b.Add("ttlMs", strconv.AppendInt(nil, max(0, q.config().MaxAge-age).Milliseconds(), 10))
		b.Add("cacheScope", []byte(`"private"`))
	}
	return q.result(b.Done())
}

// toolsOf returns the tools of all servers that the client may call, from listings that are younger than maxAge, and the age of the oldest one.
// The tools of a failing server are left out. The error object says that there was no room for a session: clients keep a list for long, and
// this one would be short only because others were using the gateway.
func (g *Gateway) toolsOf(ctx context.Context, q *request, maxAge time.Duration) (all []jsontext.Value, age time.Duration, failed jsontext.Value) {
	servers := q.endpoint.exposing(ExposeTools)
	found, errs := make([]*catalog, len(servers)), make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		ask := func() {
			c, err := g.catalogOf(upstreamContext(ctx, s), q, s, maxAge)
			if err != nil {
				g.logUnlisted(ctx, s, err)
				errs[i] = err
				return
			}
			g.pool.state(s, func(state *serverState) { state.unlisted = false })
			found[i] = c
		}
		if len(servers) == 1 {
			ask()
		} else {
			wg.Go(ask)
		}
	}
	wg.Wait()
	if failed = noRoom(servers, errs); failed != nil {
		return nil, 0, failed
	}
	for i, c := range found {
		if c == nil {
			continue
		}
		age = max(age, c.listing.Age(time.Now()))
		var leftOut []string
		for _, t := range q.config().Calls.Tools(c.listing, q.Identity) {
			if q.endpoint.server != nil {
				all = append(all, wire.StripOwn(t.Raw))
			} else if raw, why := joinedTool(q, servers, found, i, t); raw != nil {
				all = append(all, raw)
			} else {
				leftOut = append(leftOut, t.Name+": "+why)
			}
		}
		if n := len(leftOut); n > 0 {
			c.leftOut.Do(func() {
				g.options.Log.Warn("tools were left out of the list of all servers; the list of their server has them", "server", servers[i].Name,
					"count", n, "tools", strings.Join(leftOut[:min(n, maxLeftOut)], "; "))
			})
		}
	}
	return all, age, nil
}

// noRoom is the error object of a list for which the limit of sessions left no room; nil if there was room.
func noRoom(servers []*server, errs []error) jsontext.Value {
	for i, err := range errs {
		if tooManyLinks(err) {
			return unreachable(servers[i].Name, err)
		}
	}
	return nil
}

// logUnlisted logs that a list lacks a server's tools: as a warning once, until its tools are listed again.
func (g *Gateway) logUnlisted(ctx context.Context, server *server, err error) {
	level := slog.LevelDebug
	if ctx.Err() == nil { // else the client is gone
		before := g.pool.state(server, func(s *serverState) { s.unlisted = true })
		if !before.unlisted && !before.down { // connectLink has logged that it is down
			level = slog.LevelWarn
		}
	}
	g.options.Log.Log(ctx, level, "a server's tools were left out", "server", server.Name, "error", err.Error())
}

// maxLeftOut bounds how many tools a line of the log names.
const maxLeftOut = 10

// joinedTool is a tool under its joined name; nil, and why, if it is not in the list of all servers.
func joinedTool(q *request, servers []*server, found []*catalog, at int, t Tool) (jsontext.Value, string) {
	name := policy.JoinedName(servers[at].Name, t.Name)
	if t.SDKFaults != "" && !q.stateless() { // one such tool costs the client all tools
		return nil, t.SDKFaults
	}
	raw := renamed(wire.StripOwn(t.Raw), name)
	if raw == nil {
		return nil, "its name there is too long"
	}
	n := 0
	for _, c := range candidates(servers, name) {
		if i := slices.Index(servers, c.server); found[i] != nil && found[i].tools[c.name] != nil {
			n++
		}
	}
	if n != 1 {
		return nil, "another server has a tool of this name"
	}
	return raw, ""
}
