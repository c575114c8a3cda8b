package upstream

import (
	"context"
	"errors"
	"time"
)

// roundsAgain is after how long a server that had no better is asked again. It may have been busy, or slow, and may learn.
const roundsAgain = 5 * time.Minute

// A server that answers initialize over HTTP without a session cannot ask a peer anything: nothing would say whose an answer is. If it
// speaks a stateless revision, too, it can ask in its results there. That costs the log messages for which nobody has set a level; and without
// sessions there was no standalone stream, no subscription and no cancelling before 2026-07-28.

// cannotAsk reports whether the peer wants to be asked, and could be in results, and this link's server can ask it in no other way.
func (l *Link) cannotAsk() bool {
	h, overHTTP := l.conn.(*httpConn)
	return overHTTP && !l.modern && h.session == "" && l.peer.Rounds && len(l.peer.Capabilities) > len("{}") &&
		l.peer.Protocol != "" && l.peer.Protocol < statelessProtocol && l.up.roundsAgain()
}

// roundsAgain reports whether a server may be asked for a stateless revision: it was not, or not for long.
func (up *upstream) roundsAgain() bool {
	return time.Since(time.Unix(0, up.noRounds.Load())) >= roundsAgain
}

// stateless returns a link to the same server by a stateless revision in place of a cannotAsk one, which is then closed; or that one, if there is
// none to be had: whatever the server makes of being asked, it costs no link that works. Where it has no better it is not asked again
// for a while.
func (u *Upstreams) stateless(ctx context.Context, l *Link) *Link {
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
		l.up.noRounds.Store(time.Now().UnixNano())
	case errors.As(err, &e) && (e.Code == CodeTimeout || e.Code == CodeProtocol):
		l.up.noRounds.Store(time.Now().UnixNano())
	}
	return l
}
