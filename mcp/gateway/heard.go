package gateway

import (
	"context"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// maxShown is how many requests of the gateway itself may wait for the client's answer.
const maxOwnRequests = 64

// maxAsks is how many requests of one server may wait for a session's client, also for one that never answers.
const maxClientRequests = 1000

// An ask is a request to a session's client that waits for its answer.
type clientRequest struct {
	link   *link          // whose server asked; nil: the gateway did
	id     jsontext.Value // the server's
	token  jsontext.Value // the server's progress token; nil if there is none
	method string
	reply  func(wire.Message) // takes the answer to what the gateway asked; nil: it needs none
}

// await notes a request to the client and returns the id that it goes under.
func (s *clientSession) addClientRequest(a *clientRequest) jsontext.Value {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	id := "pgfsm-" + strconv.FormatUint(s.number, 10)
	s.clientRequests[id] = a
	return wire.Quote(id)
}

// shown is how many requests of the gateway itself wait.
func (s *clientSession) countOwnRequests() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.clientRequests { // in any order: they are counted
		if a.link == nil && a.reply == nil {
			n++
		}
	}
	return n
}

// owed is how many requests of one server wait for the client.
func (s *clientSession) countRequestsOf(l *link) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.clientRequests { // in any order: they are counted
		if a.link == l {
			n++
		}
	}
	return n
}

// asked is the request that waits under an id of ours; nil if none does.
func (s *clientSession) clientRequest(id jsontext.Value) *clientRequest {
	name, err := wire.Text(id)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clientRequests[name]
}

// take is asked, once: nothing waits under the id afterwards.
func (s *clientSession) takeClientRequest(id jsontext.Value) *clientRequest {
	name, err := wire.Text(id)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.clientRequests[name]
	delete(s.clientRequests, name)
	return a
}

// withdraw forgets the request that a server knows by an id, and returns ours; nil if it does not wait.
func (s *clientSession) cancelClientRequest(l *link, theirs jsontext.Value) jsontext.Value {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, a := range s.clientRequests { // in any order: one has this id
		if a.link == l && string(a.id) == string(theirs) {
			delete(s.clientRequests, name)
			return wire.Quote(name)
		}
	}
	return nil
}

// forget drops what a server asked whose link is over.
func (s *clientSession) forgetRequestsOf(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, a := range s.clientRequests { // in any order: all of the line's go
		if a.link == l {
			delete(s.clientRequests, name)
		}
	}
}

// answered takes a client's answer to a request of a server: from the session that was asked, and once.
func (g *Gateway) relayClientAnswer(ctx context.Context, q *request) {
	if q.session == nil {
		return
	}
	a := q.session.takeClientRequest(q.ID)
	switch {
	case a == nil:
		return
	case a.reply != nil:
		a.reply(q.Message)
		return
	case a.link == nil:
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWait)
	defer cancel()
	result, failed := q.Result, StripOwn(q.Error)
	passes := result
	if failed != nil {
		passes = failed
	} else {
		result = withoutReservedMeta(result, "")
	}
	if g.record(ctx, q.From, a.link.server, ToServer, a.method, passes) != nil {
		result, failed = nil, notRecorded
	}
	_ = a.link.Answer(ctx, a.id, result, failed) // a server that cannot be told has lost its link
}

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
	params := withoutReservedMeta(m.Params, "")
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
	params := withoutReservedMeta(m.Params, "")
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
		if params, err := wire.Set(l.gateway.options.Mask(withoutReservedMeta(m.Params, "")), "requestId", id); err == nil {
			_ = send(wire.Call(nil, nil, m.Method, params)) // a client that is gone is noticed by who serves it
		}
	}
}
