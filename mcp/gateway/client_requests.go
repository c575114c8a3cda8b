package gateway

import (
	"context"
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
	result, failed := q.Result, wire.StripOwn(q.Error)
	passes := result
	if failed != nil {
		passes = failed
	} else {
		result = wire.StripMeta(result)
	}
	if g.record(ctx, q.From, a.link.server, ToServer, a.method, passes) != nil {
		result, failed = nil, notRecorded
	}
	_ = a.link.Answer(ctx, a.id, result, failed) // a server that cannot be told has lost its link
}
