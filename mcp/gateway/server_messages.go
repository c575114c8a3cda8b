package gateway

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// relayDuring relays a message that a server sends during a request of a client.
func (g *Gateway) relayDuring(ctx context.Context, q *request, l *link, out session.Sender, level severity, m wire.Message) {
	switch {
	case m.ID != nil:
		l.relayRequest(ctx, m, l.pending.Load(), out)
		return
	case m.Method == methodCancelled: // in any revision: the client may have been asked in another way
		l.relayCancelled(m, out)
		return
	}
	row := methodOf(fromServer, m.Method)
	if row == nil || !row.notification || !row.in(q.Protocol) || !l.server.Expose.Has(row.needs) {
		return
	}
	switch m.Method {
	case "notifications/message":
		if l.session == nil && !l.levelOf(q, level).includes(m.Params) {
			return
		}
	case "notifications/progress", "notifications/elicitation/complete":
	default:
		l.relayNotification(m)
		return
	}
	_ = out.Send(g.forClient(m)) // the front notices that the client is gone
}

// forClient is a server's notification as the client gets it.
func (g *Gateway) forClient(m wire.Message) []byte {
	params := wire.StripMeta(m.Params)
	if params != nil {
		params = g.options.Mask(params)
	}
	return wire.Call(nil, nil, m.Method, params)
}

// receive takes a message that a server sends outside of all requests. It does not block.
func (l *link) receive(m wire.Message) {
	if m.ID == nil {
		l.relayNotification(m)
		return
	}
	p := l.pending.Load() // now: the link may belong to another request before the question is relayed
	go func() {
		<-l.connected
		if l.upstreamSession == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), ask.AnswerTimeout)
		defer cancel()
		l.relayRequest(ctx, m, p, l.session)
	}()
}

// relayNotification relays a notification that belongs to no request to the session of the link, or to the subscribers of a shared link.
func (l *link) relayNotification(m wire.Message) {
	row := methodOf(fromServer, m.Method)
	if row == nil || !row.notification || !l.server.Expose.Has(row.needs) {
		return
	}
	switch m.Method {
	case "notifications/progress":
		return // its request is over
	case noteTools:
		m.Params = nil // the gateway's own notification: its listing is stale
	case notePrompts, noteResources, noteUpdated:
		l.lists.forget(m.Method)
	case methodCancelled:
		l.relayCancelled(m, l.session)
		return
	}
	if l.session == nil {
		l.notifySubscribers(m)
	} else if row.in(l.session.Protocol) {
		_ = l.session.Send(l.gateway.forClient(m))
	}
}

// relayRequest relays a server's request to the client, if the operator exposes its method and the client declares the capability. If not,
// the server learns that there is no such method.
func (l *link) relayRequest(ctx context.Context, m wire.Message, p *ask.Pending, out session.Sender) {
	if failed := l.askClient(ctx, m, p, out); failed != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ask.AnswerTimeout)
		defer cancel()
		_ = l.Answer(ctx, m.ID, nil, failed) // a server that cannot be told has lost its link
	}
}

// askClient asks the client what a server wants to know. The error object says why not.
func (l *link) askClient(ctx context.Context, m wire.Message, p *ask.Pending, out session.Sender) (failed jsontext.Value) {
	s, row := l.session, methodOf(fromServer, m.Method)
	var declared ask.Capabilities
	switch {
	case s != nil:
		declared = s.capabilities
	case p != nil:
		declared = p.Declared()
	}
	if row == nil || row.notification || row.by != byRelay || !l.server.Expose.Has(row.needs) || declared.Lacks(m.Method, m.Params) != "" {
		return ask.NotOffered
	}
	if p != nil {
		return p.Ask(ctx, l, m)
	}
	if s.requests.Count(l) >= ask.MaxRequests {
		return ask.TooManyQuestions
	}
	params := wire.StripMeta(m.Params)
	if l.gateway.record(ctx, s.Client, l.server.Name, ToClient, m.Method, params) != nil {
		return ask.NotRecorded
	}
	r := &ask.Request{Server: l, ID: slices.Clone(m.ID), Method: m.Method}
	meta := wire.Member(params, "_meta")
	token := wire.Member(meta, "progressToken")
	if l.server.Expose.Has(ExposeProgress) {
		r.Token = slices.Clone(token)
	}
	id := s.requests.Add(r)
	if token != nil {
		meta, err := wire.Set(meta, "progressToken", id)
		if err == nil {
			params, err = wire.Set(params, "_meta", meta)
		}
		if err != nil {
			s.requests.Take(id)
			return invalid(wire.InvalidParams, "its params cannot be read")
		}
	}
	if params != nil {
		params = l.gateway.options.Mask(params)
	}
	if out.Send(wire.Call(nil, id, m.Method, params)) != nil && s.requests.Take(id) != nil {
		return invalid(wire.InternalError, "the client is gone")
	}
	return nil
}

// relayCancelled tells the client that a server does not wait for an answer any more.
func (l *link) relayCancelled(m wire.Message, out session.Sender) {
	theirs := wire.Member(m.Params, "requestId")
	if p := l.pending.Load(); p != nil {
		p.CancelQuestion(theirs)
		return
	}
	if l.session == nil || !l.server.Expose.Has(ExposeCancellation) {
		return
	}
	if id := l.session.requests.Cancel(l, theirs); id != nil {
		if params, err := wire.Set(l.gateway.options.Mask(wire.StripMeta(m.Params)), "requestId", id); err == nil {
			_ = out.Send(wire.Call(nil, nil, m.Method, params)) // the front notices that the client is gone
		}
	}
}
