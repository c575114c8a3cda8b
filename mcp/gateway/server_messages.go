package gateway

import (
	"context"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// answerTimeout bounds the time for sending an answer to a server.
const answerTimeout = 10 * time.Second

// Errors that answer questions.
var (
	notOffered       = rpcError(wire.MethodNotFound, "the client does not offer this")
	notRecorded      = rpcError(wire.InternalError, "it could not be recorded, so it was not passed on")
	tooManyQuestions = rpcError(wire.InternalError, "the client has not answered what it was asked before")
)

// relayDuring relays a message that a server sends during a request of a client.
func (l *link) relayDuring(ctx context.Context, q *request, level severity, m wire.Message) {
	switch {
	case m.ID != nil:
		l.relayRequest(ctx, m, q.Out)
		return
	case m.Method == noteCancelled: // in any revision, because the client may have been asked in another way
		l.relayCancelled(m, q.Out)
		return
	}

	row := methodOf(fromServer, m.Method)
	if row == nil || !row.notification || !row.existsIn(q.Protocol) || !l.server.Expose.Includes(row.needs) {
		return
	}

	switch m.Method {
	case noteMessage:
		// A stateless client without a level gets no messages. On a link of its own, a session's
		// client gets those of the level that the server has from it.
		if l.session == nil && (level == 0 && q.stateless() || !level.includes(m.Params)) {
			return
		}
	case noteProgress, "notifications/elicitation/complete":
	default:
		l.relayNotification(m)
		return
	}

	l.sendClean(q.Out, m)
}

// receive handles a message that a server sends outside of all requests. It does not block.
func (l *link) receive(m wire.Message) {
	if m.ID == nil {
		l.relayNotification(m)
		return
	}
	go func() {
		<-l.ready
		if l.err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
		defer cancel()
		l.relayRequest(ctx, m, l.session)
	}()
}

// relayNotification relays a notification that belongs to no request to the link's session, or to
// the subscribers of a shared link.
func (l *link) relayNotification(m wire.Message) {
	row := methodOf(fromServer, m.Method)
	if row == nil || !row.notification || !l.server.Expose.Includes(row.needs) {
		return
	}

	switch m.Method {
	case noteProgress:
		return // the request is over
	case noteTools:
		m.Params, m.Members = nil, nil // the gateway sends its own notification, because its listing is stale
	case notePrompts, noteResources, noteUpdated:
		l.forgetLists(m.Method)
	case noteCancelled:
		l.relayCancelled(m, l.session)
		return
	}

	if l.session != nil {
		if row.existsIn(l.session.Protocol) {
			l.sendClean(l.session, m)
		}
		return
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	for n := range l.subscribers { // in any order: each gets it
		n.receive(m)
	}
}

// sendClean sends a server's notification to a client, unless it is withheld. The front notices a client that
// is gone.
func (l *link) sendClean(out session.Sender, m wire.Message) {
	if message := l.gateway.forClient(l.server, m); message != nil {
		_ = out.Send(message)
	}
}

// forClient encodes a server's notification for the client; nil if clients must not get it.
func (g *Gateway) forClient(server *server, m wire.Message) []byte {
	params := wire.StripMeta(m.Params)
	if params != nil {
		clean, why := g.clean(server, params)
		if why != "" {
			return nil
		}
		params = clean
	}
	return wire.Call(nil, nil, m.Method, params)
}

// relayRequest relays a server's request to the client of the link's session, if the operator
// exposes its method and the client declares the capability. Otherwise the server gets the error
// that there is no such method.
func (l *link) relayRequest(ctx context.Context, m wire.Message, out session.Sender) {
	if failed := l.askClient(ctx, m, out); failed != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
		defer cancel()
		_ = l.Answer(ctx, m.ID, nil, failed) // on an error the server has lost its link
	}
}

// askClient sends a server's request to the client. The error object says why it could not.
func (l *link) askClient(ctx context.Context, m wire.Message, out session.Sender) (failed jsontext.Value) {
	s, row := l.session, methodOf(fromServer, m.Method)
	if s == nil || row == nil || row.notification || row.handler != byRelay || !l.server.Expose.Includes(row.needs) {
		return notOffered
	}
	// A stateless server was told of no capabilities.
	if l.Modern() || s.capabilities.undeclared(m.Method, m.Params) != "" {
		return notOffered
	}

	params := wire.StripProgressToken(wire.StripMeta(m.Params)) // clients report no progress of their answers
	id, ok := s.questions.addQuestion(&question{link: l, id: slices.Clone(m.ID), method: m.Method})
	if !ok {
		return tooManyQuestions
	}
	defer func() {
		if failed != nil {
			s.questions.removeQuestion(id)
		}
	}()

	if l.gateway.recordPassed(ctx, s.Client, l.server.Name, ToClient, m.Method, params) != nil {
		return notRecorded
	}

	if params != nil {
		clean, why := l.gateway.clean(l.server, params)
		if why != "" {
			return rpcError(wire.InternalError, "the client must not see it: "+why)
		}
		params = clean
	}

	if out.Send(wire.Call(nil, id, m.Method, params)) != nil && s.questions.removeQuestion(id) != nil {
		return rpcError(wire.InternalError, "the client is gone")
	}

	return nil
}

// relayCancelled tells the client that a server no longer waits for an answer.
func (l *link) relayCancelled(m wire.Message, out session.Sender) {
	if l.session == nil || !l.server.Expose.Includes(ExposeCancellation) {
		return
	}
	id := l.session.questions.cancelQuestion(l, wire.Member(m.Params, "requestId"))
	if id == nil {
		return
	}
	clean, why := l.gateway.clean(l.server, wire.StripMeta(m.Params))
	if why != "" {
		return
	}
	params, err := wire.Set(clean, "requestId", id)
	if err != nil {
		return
	}
	_ = out.Send(wire.Call(nil, nil, m.Method, params)) // the front notices a client that is gone
}
