package gateway

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// during returns what takes a server's words during a request of a client: they go out on the request's stream.
func (g *Gateway) messageHandler(ctx context.Context, q *request, l *link, said *clientStream, level severity) func(wire.Message) {
	return func(m wire.Message) {
		if m.ID != nil {
			l.relayRequest(ctx, m, l.pending.Load(), said.send)
			return
		}
		if m.Method == methodCancelled { // whatever the client's revision: it may have been asked in another way
			l.relayCancelled(m, said.send)
			return
		}
		row := methodOf(fromServer, m.Method)
		if row == nil || !row.notification || !row.in(q.Protocol) || !l.server.Expose.Has(row.needs) {
			return
		}
		switch m.Method {
		case "notifications/message":
			if !level.includes(m.Params, q.stateless()) {
				return
			}
		case "notifications/progress", "notifications/elicitation/complete":
		default:
			l.relayNotification(m)
			return
		}
		_ = said.send(g.toClient(m)) // a client that is gone is noticed by who serves it
	}
}

// notification is a server's notification as it goes to a client.
func (g *Gateway) toClient(m wire.Message) []byte {
	params := wire.StripMeta(m.Params)
	if params != nil {
		params = g.options.Mask(params)
	}
	return wire.Call(nil, nil, m.Method, params)
}

// heard takes what a server says outside of all requests. It does not block.
func (l *link) receive(m wire.Message) {
	if m.ID == nil {
		l.relayNotification(m)
		return
	}
	e := l.pending.Load() // now: the line may be another request's before the question is passed on
	go func() {
		<-l.connected
		if l.upstreamSession == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), answerWait)
		defer cancel()
		l.relayRequest(ctx, m, e, func(message []byte) error { _ = l.session.Send(message); return nil })
	}()
}

// note takes a notification that belongs to no request: it goes to the session, or to the subscriptions that listen for it.
func (l *link) relayNotification(m wire.Message) {
	row := methodOf(fromServer, m.Method)
	if row == nil || !row.notification || !l.server.Expose.Has(row.needs) {
		return
	}
	switch m.Method {
	case "notifications/progress":
		return // it belongs to a request, and that is over
	case "notifications/tools/list_changed":
		m.Params = nil // the gateway's own word: its listing is stale
	case "notifications/prompts/list_changed", "notifications/resources/list_changed", "notifications/resources/updated":
		l.lists.forget(m.Method)
	case "notifications/cancelled":
		l.relayCancelled(m, func(message []byte) error { _ = l.session.Send(message); return nil })
		return
	}
	if l.session != nil {
		if row.in(l.session.Protocol) {
			_ = l.session.Send(l.gateway.toClient(m))
		}
		return
	}
	l.notifySubscriptions(m)
}

// ask passes a server's request on to the client, if that is exposed and the client can answer it. Else the server is told at
// once that there is no such method, and the client sees nothing.
func (l *link) relayRequest(ctx context.Context, m wire.Message, e *pendingRequest, send func([]byte) error) {
	refuse := func(failed jsontext.Value) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWait)
		defer cancel()
		_ = l.Answer(ctx, m.ID, nil, failed) // a server that cannot be told has lost its link
	}
	s, row := l.session, methodOf(fromServer, m.Method)
	var can clientCapabilities
	switch {
	case s != nil:
		can = s.capabilities
	case e != nil:
		can = e.first
	}
	if row == nil || row.notification || row.by != byRelay || !l.server.Expose.Has(row.needs) || can.cannotAnswer(m.Method, m.Params) != "" {
		refuse(notOffered)
		return
	}
	if e != nil {
		if failed := e.relayQuestion(ctx, l, m); failed != nil {
			refuse(failed)
		}
		return
	}
	if s.countRequestsOf(l) >= maxClientRequests {
		refuse(tooManyQuestions)
		return
	}
	params := wire.StripMeta(m.Params)
	if l.gateway.record(ctx, s.Client, l.server, ToClient, m.Method, params) != nil {
		refuse(notRecorded)
		return
	}
	a := &clientRequest{link: l, id: slices.Clone(m.ID), method: m.Method, token: slices.Clone(wire.Member(wire.Member(params, "_meta"), "progressToken"))}
	id := s.addClientRequest(a)
	if a.token != nil {
		meta, err := wire.Set(wire.Member(params, "_meta"), "progressToken", id)
		if err == nil {
			params, err = wire.Set(params, "_meta", meta)
		}
		if err != nil {
			s.takeClientRequest(id)
			refuse(invalid(wire.InvalidParams, "its params cannot be read"))
			return
		}
	}
	if params != nil {
		params = l.gateway.options.Mask(params)
	}
	if send(wire.Call(nil, id, m.Method, params)) != nil && s.takeClientRequest(id) != nil {
		refuse(invalid(wire.InternalError, "the client is gone"))
	}
}

// withdrawn passes a server's word on that it does not wait for the client's answer any more.
func (l *link) relayCancelled(m wire.Message, send func([]byte) error) {
	if e := l.pending.Load(); e != nil {
		e.cancelQuestion(wire.Member(m.Params, "requestId"))
		return
	}
	if l.session == nil || !l.server.Expose.Has(ExposeCancellation) {
		return
	}
	if id := l.session.cancelClientRequest(l, wire.Member(m.Params, "requestId")); id != nil {
		if params, err := wire.Set(l.gateway.options.Mask(wire.StripMeta(m.Params)), "requestId", id); err == nil {
			_ = send(wire.Call(nil, nil, m.Method, params)) // a client that is gone is noticed by who serves it
		}
	}
}
