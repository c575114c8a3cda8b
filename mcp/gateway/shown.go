package gateway

import (
	"pgfsm/mcp/wire"
)

// A shown is a URL that a client has a person open.
type shown struct{ url, note, id string }

// params is the params of the elicitation.
func (s *shown) params() []byte {
	var b object
	b.add("mode", []byte(`"url"`))
	b.add("message", wire.Quote(s.note))
	b.add("url", wire.Quote(s.url))
	b.add("elicitationId", wire.Quote(s.id))
	return b.done()
}

// show has the client show a URL to a person: one with a session at once, another in place of the answer.
func (c *calling) show(url, note, id string) {
	if !c.can.opens() {
		return
	}
	w := &shown{url, note, id}
	s := c.q.session
	if s == nil {
		c.url = w
		return
	}
	if s.shown() >= maxShown {
		return
	}
	ours := s.await(&ask{method: "elicitation/create"})
	if c.said.send(wire.Call(nil, ours, "elicitation/create", w.params())) != nil {
		s.take(ours)
	}
}

// shownAs is the name of the one question in such a result.
const shownAs = "decide"

// result is the result that has a stateless client show the URL and ask once more.
func (s *shown) result(q *request, server *Server, tool string) []byte {
	var asks object
	asks.add(shownAs, inputRequest("elicitation/create", s.params()))
	return inputRequired(asks.done(), q.gateway.seals.seal(ofShown, s.id, q.From, server.Name, tool))
}
