package gateway

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/wire"
)

const methodSetLevel = "logging/setLevel"

// A severity is that of a log message; zero is none.
type severity int

// includes reports whether a log message goes to a client of this level. None goes to a client without one.
func (s severity) includes(params jsontext.Value) bool {
	word, _ := wire.Text(wire.Member(params, "level"))
	return s > 0 && severityOf(word) >= s
}

// severities are the words of the protocol, the least severe first.
var severities = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// severityOf reads a word; zero if it is none.
func severityOf(word string) severity { return severity(slices.Index(severities, word) + 1) }

// wantedLogLevel is the level of the request or the session; zero if the client set none.
func (q *request) wantedLogLevel() severity {
	if s := q.session; s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return severityOf(s.level)
	}
	return q.declared.logLevel
}

// levelOf is the level by which log messages of a shared link are filtered for the client of a request. A client with a session that set no
// level gets what the server sends anyway. If another client has set the server's level, it gets the level info.
func (l *link) levelOf(q *request, level severity) severity {
	if level > 0 || q.session == nil {
		return level
	}
	l.linkSubscriptions.mu.Lock()
	defer l.linkSubscriptions.mu.Unlock()
	if l.level == 0 {
		return severityOf("debug")
	}
	return severityOf("info")
}

// levelFor is the log level of a request at a server, if the operator exposes its log. A server with sessions that clients share gets the most
// detailed level that one of them wants.
func (g *Gateway) levelFor(ctx context.Context, q *request, l *link) severity {
	if !l.server.Expose.Has(ExposeLogging) || q.Method == methodSetLevel {
		return 0
	}
	level := q.wantedLogLevel()
	if level == 0 || l.session != nil || l.Modern() {
		return level
	}
	l.linkSubscriptions.mu.Lock()
	finer := l.level == 0 || level < l.level
	if finer {
		l.level = level
	}
	l.linkSubscriptions.mu.Unlock()
	if finer && l.offers().has(offersLogging) {
		_, _ = l.Request(ctx, methodSetLevel, levelParams(level), nil) // if it fails, the log is coarser
	}
	return level
}

func levelParams(level severity) jsontext.Value {
	return wire.Single("level", wire.Quote(severities[level-1]))
}

// withLevel adds the log level to the params of a request. The link removes it where the server does not take it there.
func withLevel(params jsontext.Value, level severity) jsontext.Value {
	if level == 0 {
		return params
	}
	meta, err := wire.Set(wire.Member(params, "_meta"), metaLogLevel, wire.Quote(severities[level-1]))
	if err != nil {
		return params
	}
	if set, err := wire.Set(params, "_meta", meta); err == nil {
		params = set
	}
	return params
}

// setLevel sets the log level of a session, and of the connected servers that it shares with nobody. Other servers get it when they are connected,
// or with the next request.
func (g *Gateway) setLevel(ctx context.Context, q *request) []byte {
	word, _ := wire.Text(wire.Member(q.Params, "level"))
	level := severityOf(word)
	if level == 0 {
		return q.refuse(wire.InvalidParams, `"level" is not one of %q`, severities)
	}
	s := q.session
	s.mu.Lock()
	s.level = word
	s.mu.Unlock()
	if one := q.endpoint.server; one != nil && one.separate() { // it may not be connected yet
		l, err := g.linkTo(ctx, q, q.endpoint.server)
		if err != nil {
			return q.fail(unreachable(q.endpoint.server.Name, err))
		}
		defer l.release()
		if !l.Modern() {
			return g.relayTo(ctx, q, q.endpoint.server, q.Params)
		}
	}
	for _, l := range s.links.working(q.endpoint.exposing(ExposeLogging)) {
		if !l.Modern() && l.offers().has(offersLogging) {
			if g.record(ctx, q.From, l.server.Name, ToServer, q.Method, levelParams(level)) != nil {
				return q.fail(ask.NotRecorded)
			}
			_, _ = l.Request(ctx, methodSetLevel, levelParams(level), nil) // a server that fails does not keep it from the others
		}
	}
	return q.result(jsontext.Value(`{}`))
}
