package gateway

import (
	"context"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// maxShown is how many requests of the gateway itself may wait for the client's answer.
const maxShown = 64

// maxAsks is how many requests of one server may wait for a session's client, also for one that never answers.
const maxAsks = 1000

// An ask is a request to a session's client that waits for its answer.
type ask struct {
	line   *line          // whose server asked; nil: the gateway did
	id     jsontext.Value // the server's
	token  jsontext.Value // the server's progress token; nil if there is none
	method string
	reply  func(wire.Message) // takes the answer to what the gateway asked; nil: it needs none
}

// await notes a request to the client and returns the id that it goes under.
func (s *clientSession) await(a *ask) jsontext.Value {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	id := "pgfsm-" + strconv.FormatUint(s.number, 10)
	s.asks[id] = a
	return wire.Quote(id)
}

// shown is how many requests of the gateway itself wait.
func (s *clientSession) shown() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.asks { // in any order: they are counted
		if a.line == nil && a.reply == nil {
			n++
		}
	}
	return n
}

// owed is how many requests of one server wait for the client.
func (s *clientSession) owed(l *line) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.asks { // in any order: they are counted
		if a.line == l {
			n++
		}
	}
	return n
}

// asked is the request that waits under an id of ours; nil if none does.
func (s *clientSession) asked(id jsontext.Value) *ask {
	name, err := wire.Text(id)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asks[name]
}

// take is asked, once: nothing waits under the id afterwards.
func (s *clientSession) take(id jsontext.Value) *ask {
	name, err := wire.Text(id)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.asks[name]
	delete(s.asks, name)
	return a
}

// withdraw forgets the request that a server knows by an id, and returns ours; nil if it does not wait.
func (s *clientSession) withdraw(l *line, theirs jsontext.Value) jsontext.Value {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, a := range s.asks { // in any order: one has this id
		if a.line == l && string(a.id) == string(theirs) {
			delete(s.asks, name)
			return wire.Quote(name)
		}
	}
	return nil
}

// forget drops what a server asked whose link is over.
func (s *clientSession) forget(l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, a := range s.asks { // in any order: all of the line's go
		if a.line == l {
			delete(s.asks, name)
		}
	}
}

// answered takes a client's answer to a request of a server: from the session that was asked, and once.
func (g *Gateway) answered(ctx context.Context, q *request) {
	if q.session == nil {
		return
	}
	a := q.session.take(q.ID)
	switch {
	case a == nil:
		return
	case a.reply != nil:
		a.reply(q.Message)
		return
	case a.line == nil:
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWait)
	defer cancel()
	result, failed := q.Result, StripOwn(q.Error)
	passes := result
	if failed != nil {
		passes = failed
	} else {
		result = cross(result, "")
	}
	if g.passes(ctx, q.From, a.line.server, ToServer, a.method, passes) != nil {
		result, failed = nil, notRecorded
	}
	_ = a.line.Answer(ctx, a.id, result, failed) // a server that cannot be told has lost its link
}

// during returns what takes a server's words during a request of a client: they go out on the request's stream.
func (g *Gateway) during(ctx context.Context, q *request, l *line, said *stream, level severity) func(wire.Message) {
	return func(m wire.Message) {
		if m.ID != nil {
			l.ask(ctx, m, l.guest.Load(), said.send)
			return
		}
		if m.Method == methodCancelled { // whatever the client's revision: it may have been asked in another way
			l.withdrawn(m, said.send)
			return
		}
		row := methodOf(fromServer, m.Method)
		if row == nil || !row.note || !row.in(q.Protocol) || !l.server.Expose.Has(row.needs) {
			return
		}
		switch m.Method {
		case "notifications/message":
			if !level.hears(m.Params, q.modern()) {
				return
			}
		case "notifications/progress", "notifications/elicitation/complete":
		default:
			l.note(m)
			return
		}
		_ = said.send(g.notification(m)) // a client that is gone is noticed by who serves it
	}
}

// notification is a server's notification as it goes to a client.
func (g *Gateway) notification(m wire.Message) []byte {
	params := cross(m.Params, "")
	if params != nil {
		params = g.options.Mask(params)
	}
	return wire.Call(nil, nil, m.Method, params)
}

// heard takes what a server says outside of all requests. It does not block.
func (l *line) heard(m wire.Message) {
	if m.ID == nil {
		l.note(m)
		return
	}
	e := l.guest.Load() // now: the line may be another request's before the question is passed on
	go func() {
		<-l.made
		if l.serverLink == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), answerWait)
		defer cancel()
		l.ask(ctx, m, e, func(message []byte) error { _ = l.owner.Send(message); return nil })
	}()
}

// note takes a notification that belongs to no request: it goes to the session, or to the subscriptions that listen for it.
func (l *line) note(m wire.Message) {
	row := methodOf(fromServer, m.Method)
	if row == nil || !row.note || !l.server.Expose.Has(row.needs) {
		return
	}
	switch m.Method {
	case "notifications/progress":
		return // it belongs to a request, and that is over
	case "notifications/tools/list_changed":
		m.Params = nil // the gateway's own word: its listing is stale
	case "notifications/prompts/list_changed", "notifications/resources/list_changed", "notifications/resources/updated":
		l.lists.changed(m.Method)
	case "notifications/cancelled":
		l.withdrawn(m, func(message []byte) error { _ = l.owner.Send(message); return nil })
		return
	}
	if l.owner != nil {
		if row.in(l.owner.Protocol) {
			_ = l.owner.Send(l.gateway.notification(m))
		}
		return
	}
	l.tell(m)
}

// ask passes a server's request on to the client, if that is exposed and the client can answer it. Else the server is told at
// once that there is no such method, and the client sees nothing.
func (l *line) ask(ctx context.Context, m wire.Message, e *errand, send func([]byte) error) {
	refuse := func(failed jsontext.Value) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWait)
		defer cancel()
		_ = l.Answer(ctx, m.ID, nil, failed) // a server that cannot be told has lost its link
	}
	s, row := l.owner, methodOf(fromServer, m.Method)
	var can abilities
	switch {
	case s != nil:
		can = s.can
	case e != nil:
		can = e.can
	}
	if row == nil || row.note || row.by != byRelay || !l.server.Expose.Has(row.needs) || can.refuses(m.Method, m.Params) != "" {
		refuse(notOffered)
		return
	}
	if e != nil {
		if failed := e.ask(ctx, l, m); failed != nil {
			refuse(failed)
		}
		return
	}
	if s.owed(l) >= maxAsks {
		refuse(tooManyQuestions)
		return
	}
	params := cross(m.Params, "")
	if l.gateway.passes(ctx, s.Client, l.server, ToClient, m.Method, params) != nil {
		refuse(notRecorded)
		return
	}
	a := &ask{line: l, id: slices.Clone(m.ID), method: m.Method, token: slices.Clone(wire.Member(wire.Member(params, "_meta"), "progressToken"))}
	id := s.await(a)
	if a.token != nil {
		meta, err := wire.Set(wire.Member(params, "_meta"), "progressToken", id)
		if err == nil {
			params, err = wire.Set(params, "_meta", meta)
		}
		if err != nil {
			s.take(id)
			refuse(invalid(wire.InvalidParams, "its params cannot be read"))
			return
		}
	}
	if params != nil {
		params = l.gateway.options.Mask(params)
	}
	if send(wire.Call(nil, id, m.Method, params)) != nil && s.take(id) != nil {
		refuse(invalid(wire.InternalError, "the client is gone"))
	}
}

// withdrawn passes a server's word on that it does not wait for the client's answer any more.
func (l *line) withdrawn(m wire.Message, send func([]byte) error) {
	if e := l.guest.Load(); e != nil {
		e.withdraw(wire.Member(m.Params, "requestId"))
		return
	}
	if l.owner == nil || !l.server.Expose.Has(ExposeCancellation) {
		return
	}
	if id := l.owner.withdraw(l, wire.Member(m.Params, "requestId")); id != nil {
		if params, err := wire.Set(l.gateway.options.Mask(cross(m.Params, "")), "requestId", id); err == nil {
			_ = send(wire.Call(nil, nil, m.Method, params)) // a client that is gone is noticed by who serves it
		}
	}
}
