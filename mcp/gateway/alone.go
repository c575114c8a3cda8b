package gateway

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp"
	"pgfsm/mcp/wire"
)

// maxAlone is how many lines to one server that may ask by itself an identity has at once for stateless requests, one for each request
// that is under way. Where there is none left, a request shares one whose server is told that the client can do nothing.
const maxAlone = 16

// alone returns a line that no other request has before it is released. A server with sessions does not always say what it asks
// a question for; so that the question gets to the client whose request it is about, the line must be that request's alone.
func (g *Gateway) alone(ctx context.Context, q *request, server *Server) (*line, error) {
	can := q.can()
	can.rootsChanged = false // there is no such notification in the stateless revisions
	told := can.told(server.Expose)
	key := lineKey{who: q.from, server: server.Name, told: string(told)}
	l, err := g.pool.shared.getAlone(ctx, key, func(ctx context.Context) (*line, error) {
		return g.join(ctx, q.from, nil, server, Stateless, told)
	})
	var no *mcp.LinkError
	if errors.Is(err, errTooManyLinks) || errors.As(err, &no) && no.Code == mcp.CodeLinks {
		return g.share(ctx, q, server, jsontext.Value(`{}`))
	}
	return l, err
}

// getAlone is get for the first line of a key that nobody uses. The error is errTooManyLinks if there is none.
func (t *lines) getAlone(ctx context.Context, key lineKey, connect func(context.Context) (*line, error)) (*line, error) {
	s, err := t.takeAlone(key, connect)
	if err != nil {
		return nil, err
	}
	return t.wait(ctx, s)
}

func (t *lines) takeAlone(key lineKey, connect func(context.Context) (*line, error)) (*slot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key.lane = 1; key.lane <= maxAlone; key.lane++ {
		if s := t.slots[key]; s == nil || s.uses == 0 {
			return t.taken(key, connect)
		}
	}
	return nil, errTooManyLinks
}

// host has the server's questions asked of an errand's client, if no other request has the line.
func (l *line) host(e *errand) {
	if l.slot.key.lane > 0 {
		l.guest.Store(e)
	}
}

// leave takes host back. What the server still wants to know, nobody tells it.
func (l *line) leave(e *errand) {
	if e == nil || !l.guest.CompareAndSwap(e, nil) {
		return
	}
	if open := e.close(); len(open) > 0 {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), answerWait)
			defer cancel()
			for _, x := range open {
				_ = l.Answer(ctx, x.id, nil, invalid(wire.InternalError, "the request that this was asked for is over")) // as it may be itself
			}
		}()
	}
}
