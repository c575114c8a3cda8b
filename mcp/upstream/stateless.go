package upstream

import (
	"context"
	"errors"
	"time"
)

// roundsAgain is after how long a server that refused a stateless revision is asked again: it may have been busy, or slow.
const roundsAgain = 5 * time.Minute

// A server that answers initialize over HTTP without a session cannot ask a peer anything, because nothing would tell whose answer comes back. If it
// also speaks a stateless revision, it can ask in its results there. Only log messages without a requested level are lost: without sessions there was
// no standalone stream, no subscription and no cancellation before 2026-07-28.

// cannotAsk reports whether the peer can be asked in results, and this link's server cannot ask it in any other way.
func (l *Link) cannotAsk() bool {
	h, overHTTP := l.conn.(*httpConn)
	return overHTTP && !l.modern && h.session == "" && l.peer.Rounds && len(l.peer.Capabilities) > len("{}") &&
		l.peer.Protocol != "" && l.peer.Protocol < statelessProtocol && l.up.roundsAgain()
}

// roundsAgain reports whether a server may be asked for a stateless revision.
func (up *upstream) roundsAgain() bool {
	return time.Since(time.Unix(0, up.noRounds.Load())) >= roundsAgain
}

// stateless returns a link to the same server in a stateless revision, and closes l; or l, if the server refuses that. A server that refuses is not
// asked again for a while.
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
