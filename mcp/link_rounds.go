package mcp

import (
	"context"
	"errors"
)

// A server that answers initialize over HTTP without a session cannot ask a peer anything: nothing would say whose an answer is. If it
// speaks a stateless revision, too, it can ask in its results there. That costs the log messages for which nobody has set a level; and without
// sessions there was no stream of news, no subscription and no cancelling before 2026-07-28.

// mute reports whether the peer wants to be asked, and could be in results, and this link's server can ask it in no other way.
func (l *Link) mute() bool {
	h, overHTTP := l.carrier.(*httpCarrier)
	return overHTTP && !l.modern && h.session == "" && l.peer.Rounds && len(l.peer.Capabilities) > len("{}") &&
		l.peer.Protocol != "" && l.peer.Protocol < statelessProtocol && !l.up.noRounds.Load()
}

// inRounds returns a link to the same server by a stateless revision in place of a mute one, which is then closed; or that one, if there is
// none to be had: whatever the server makes of being asked, it costs no link that works. Where it has no better it is not asked again.
func (u *Upstreams) inRounds(ctx context.Context, l *Link) *Link {
	p := l.peer
	p.Protocol = statelessProtocol
	other, err := u.link(ctx, l.up, p)
	var e *LinkError
	switch {
	case err == nil && other.modern:
		l.Close()
		return other
	case err == nil:
		other.Close()
		l.up.noRounds.Store(true)
	case errors.As(err, &e) && (e.Code == CodeTimeout || e.Code == CodeProtocol):
		l.up.noRounds.Store(true)
	}
	return l
}
