package gateway

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
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
		for _, t := range q.config().Calls.Tools(c.listing, q.Identity) {
			if q.endpoint.server != nil {
				all = append(all, wire.StripOwn(t.Raw))
			} else if raw := g.joinedTool(servers, found, i, t); raw != nil {
				all = append(all, raw)
			}
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

// joinedTool is a tool under its joined name; nil if the name is too long, or another server has it.
func (g *Gateway) joinedTool(servers []*server, found []*catalog, at int, t Tool) jsontext.Value {
	name := joinedName(servers[at], t.Name)
	raw := renamed(wire.StripOwn(t.Raw), name)
	why := "its name is too long"
	if raw != nil {
		n := 0
		for _, c := range candidates(servers, name) {
			if i := slices.Index(servers, c.server); found[i] != nil && found[i].tools[c.name] != nil {
				n++
			}
		}
		if n == 1 {
			return raw
		}
		why = "another server has one of this name"
	}
	g.options.Log.Debug("a tool was left out", "server", servers[at].Name, "tool", t.Name, "reason", why)
	return nil
}
