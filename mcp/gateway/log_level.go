package gateway

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// A severity is the level of a log message; zero is no level.
type severity int

// severities lists the protocol's words, the least severe first.
var severities = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// severityOf returns the severity of a word; zero if the protocol has no such word.
func severityOf(word string) severity { return severity(slices.Index(severities, word) + 1) }

func (s severity) name() string { return severities[s-1] }

// includes reports whether a client of this level gets a log message.
func (s severity) includes(params jsontext.Value) bool {
	word, _ := wire.Text(wire.Member(params, "level"))
	return severityOf(word) >= s
}

// setLevel sets the log level of a session, and of the connected servers that the session does not
// share. A server that refuses it keeps its level. Other servers get the level when they are
// connected, or with the next request.
func (g *Gateway) setLevel(ctx context.Context, q *request) []byte {
	word, _ := wire.Text(wire.Member(q.Params, "level"))
	level := severityOf(word)
	if level == 0 {
		return q.answerErrorf(wire.InvalidParams, `"level" is not one of %q`, severities)
	}
	s := q.session
	s.mu.Lock()
	s.level = level
	s.mu.Unlock()

	for _, l := range g.links.workingLinks(s, q.endpoint.serversExposing(ExposeLogging)) {
		if l.Modern() || !l.offersTo(q.Protocol).includes(offersLogging) {
			continue
		}
		if g.recordPassed(ctx, q.From, l.server.Name, ToServer, q.Method, levelParams(level)) != nil {
			return q.answerError(notRecorded)
		}
		// An error does not keep the level from the other servers.
		_, _ = l.Request(ctx, methodSetLevel, levelParams(level), nil)
	}
	return q.answerResult(jsontext.Value(`{}`))
}

// wantedLogLevel returns the level of the request or the session; zero if the client set none.
func (q *request) wantedLogLevel() severity {
	if s := q.session; s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.level
	}
	return q.logLevel
}

// setSharedLevel gives a shared server with sessions the most detailed level that one of its
// clients wants.
func (l *link) setSharedLevel(ctx context.Context, level severity) {
	if l.session != nil || l.Modern() {
		return
	}
	l.mu.Lock()
	finer := l.level == 0 || level < l.level
	if finer {
		l.level = level
	}
	l.mu.Unlock()
	if finer && readOffers(l.ServerInfo().Capabilities).includes(offersLogging) {
		_, _ = l.Request(ctx, methodSetLevel, levelParams(level), nil) // if it fails, the log is coarser
	}
}

func levelParams(level severity) jsontext.Value {
	return wire.Single("level", wire.Quote(level.name()))
}

// withLevel adds the log level to the params of a request. The link removes it where the server
// does not accept it there.
func withLevel(params jsontext.Value, level severity) jsontext.Value {
	if level == 0 {
		return params
	}
	meta, err := wire.Set(wire.Member(params, "_meta"), metaLogLevel, wire.Quote(level.name()))
	if err != nil {
		return params
	}
	if set, err := wire.Set(params, "_meta", meta); err == nil {
		params = set
	}
	return params
}
