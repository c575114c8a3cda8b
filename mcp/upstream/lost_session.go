package upstream

import (
	"context"
	"net/http"
	"strings"
)

// A restarted server has forgotten its sessions. By MCP 2025-11-25 (transports, session management)
// it answers their requests with 404, and the client begins a new session. Some servers answer with
// another status, which may have other causes.

// hasSession reports whether the server keeps a session for the link over HTTP.
func (l *Link) hasSession() bool {
	h, ok := l.conn.(*httpConn)
	return l.up.server.Type == TypeSSE || ok && h.settled.Load() != nil && h.session != "" && !l.modern
}

// checkLostSession ends the link if an HTTP status says that the server has forgotten the session.
func (l *Link) checkLostSession(status int) *fault {
	if !l.hasSession() || status != http.StatusNotFound && status != http.StatusGone {
		return nil
	}
	return l.endWith(lostSession(status))
}

func lostSession(status int) *fault {
	return &fault{code: CodeUnreachable, reason: httpReason(status) + ": it has forgotten the session"}
}

// checkSession retires the link if the server may have forgotten the session:
// it refused a list, or refused another request and then a ping.
func (l *Link) checkSession(q *query, o outcome) {
	switch {
	case o.status < http.StatusBadRequest || q.method == methodInitialize || !l.hasSession():
	case strings.HasSuffix(q.method, "/list"):
		l.retire(lostSession(o.status))
	case o.status == http.StatusBadRequest, o.status == http.StatusUnauthorized, o.status == http.StatusForbidden:
		// The status may concern this request alone. A session that is lost refuses a ping, too.
		ctx, cancel := context.WithTimeout(l.ctx, l.up.server.ConnectTimeout)
		defer cancel()
		ping, err := l.newQuery(methodPing, nil, nil)
		if err != nil {
			return
		}
		if o := l.conn.roundTrip(ctx, ping); o.status >= http.StatusBadRequest {
			l.retire(lostSession(o.status))
		}
	}
}

// retire ends the link with f as soon as no request is under way.
func (l *Link) retire(f *fault) {
	l.retired.Store(f)
	if l.calls.Load() == 0 {
		l.endWith(f)
	}
}

// closeAfterCalls closes the link now, or with the last request that is under way.
func (l *Link) closeAfterCalls() {
	if l.calls.Load() == 0 {
		l.Close()
	}
	l.retire(&fault{code: CodeClosed, reason: errLinkClosed})
}

// Retired reports whether the link has ended, or will end with the requests that are under way.
func (l *Link) Retired() bool { return l.retired.Load() != nil || l.ctx.Err() != nil }

// endRequest counts the end of a request. It ends a retired link with its last request.
func (l *Link) endRequest() {
	if l.calls.Add(-1) > 0 {
		return
	}
	if f := l.retired.Load(); f != nil {
		l.endWith(f)
	}
}
