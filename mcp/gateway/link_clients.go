package gateway

import (
	"context"

	"pgfsm/mcp/wire"
)

// useLink calls use with the client's link with a server. If repeat is set, and the link is retired
// meanwhile because the server has lost the session, it calls use once more with the next link. A
// list is safe to repeat.
func (g *Gateway) useLink(ctx context.Context, q *request, server *server, repeat bool, use func(*link) error) error {
	for {
		l, err := g.linkTo(ctx, q, server)
		if err != nil {
			return err
		}
		err = use(l)
		lost := err != nil && l.Retired()
		l.release()
		if !lost || !repeat {
			return err
		}
		repeat = false
	}
}

// upstreamContext returns the context of a request at its server. A server
// whose cancellation is not exposed does not learn that the client cancels.
func upstreamContext(ctx context.Context, server *server) context.Context {
	if server.Expose.Includes(ExposeCancellation) {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// restoreSession sends the client's log level and subscribed resources to a server with sessions,
// over the new link of a client session.
func (l *link) restoreSession() {
	s := l.session
	if s == nil || l.Modern() {
		return
	}

	s.mu.Lock()
	level := s.level
	s.mu.Unlock()
	offers, uris := l.offersTo(s.Protocol), s.watchedResources(l.server.Name)
	if !offers.includes(offersLogging) {
		level = 0
	}

	if !offers.includes(offersSubscriptions) { // the operator may have stopped exposing them
		uris = nil
	}

	if level == 0 && len(uris) == 0 {
		return
	}

	go func() {
		ctx, cancel := context.WithTimeout(s.Context, answerTimeout)
		defer cancel()
		if level > 0 {
			// If it fails, the server chooses the level.
			_, _ = l.Request(ctx, methodSetLevel, levelParams(level), nil)
		}
		for _, uri := range uris {
			// If it fails, there are no notifications.
			_, _ = l.Request(ctx, methodSubscribe, uriParams(uri), nil)
		}
	}()
}

// A subscriber gets the notifications of a shared link: the [subscription] of a stateless client,
// or a [clientSession].
type subscriber interface {
	receive(wire.Message) // must not block
}

// addSubscriber sends the link's notifications to a subscriber until removeSubscriber is called.
func (l *link) addSubscriber(n subscriber) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.subscribers == nil {
		l.subscribers = make(map[subscriber]struct{})
	}
	l.subscribers[n] = struct{}{}
}

func (l *link) removeSubscriber(n subscriber) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.subscribers, n)
}
