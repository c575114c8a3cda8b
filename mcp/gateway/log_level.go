package gateway

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/wire"
)

const methodSetLevel = "logging/setLevel"

// A severity is how much a log message matters; zero stands for none.
type severity int

// hears reports whether a log message goes to a client. A stateless client gets what it asked for with this request; the server
// of a session knows the session's level itself.
func (s severity) includes(params jsontext.Value, modern bool) bool {
	if !modern {
		return true
	}
	word, _ := wire.Text(wire.Member(params, "level"))
	return s > 0 && severityOf(word) >= s
}

// severities are the protocol's words, in order. What comes first matters least.
var severities = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// severityOf reads a word; zero if it is none.
func severityOf(word string) severity { return severity(slices.Index(severities, word) + 1) }

// wanted is the log level that the client wants to hear: with the request, or for the session. Zero: it did not say.
func (q *request) wantedLogLevel() severity {
	if s := q.session; s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return severityOf(s.level)
	}
	return q.declared.logLevel
}

// levelFor is the log level of a request to a server, if the operator exposes its log. A server with sessions that is shared by
// stateless clients is told of the finest level that one of them wants.
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
	if finer && readServerCapabilities(l.Hello().Capabilities).logging {
		_, _ = l.Request(ctx, methodSetLevel, levelParams(level), nil) // without it the log is coarser
	}
	return level
}

func levelParams(level severity) jsontext.Value {
	return jsontext.Value(`{"level":"` + severities[level-1] + `"}`)
}

// withLevel puts the log level into the params of a request. The link takes it out again where the server does not want it there.
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

// setLevel takes the log level of a session, and tells the servers with sessions that are connected. Others hear of it when they
// are, or with each request.
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
	if q.endpoint.server != nil { // it may not have been needed before
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
		if !l.Modern() && readServerCapabilities(l.Hello().Capabilities).logging {
			if g.record(ctx, q.From, l.server.Name, ToServer, q.Method, levelParams(level)) != nil {
				return q.fail(ask.NotRecorded)
			}
			_, _ = l.Request(ctx, methodSetLevel, levelParams(level), nil) // one server without it must not keep it from the others
		}
	}
	return q.result(jsontext.Value(`{}`))
}
