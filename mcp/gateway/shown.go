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
	if !c.can.elicitation || !c.can.url {
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
	var one, asks, b object
	one.add("method", []byte(`"elicitation/create"`))
	one.add("params", s.params())
	asks.add(shownAs, one.done())
	b.add("resultType", []byte(`"input_required"`))
	b.add("inputRequests", asks.done())
	b.add("requestState", wire.Quote(q.gateway.seals.seal(ofShown, s.id, q.from, server.Name, tool)))
	return b.done()
}

// returns reports whether a call is the repetition of one whose client was to show a URL.
func (q *request) returns(server *Server, tool string, p callParams) bool {
	if q.session != nil || p.state == nil {
		return false
	}
	text, err := wire.Text(p.state)
	if err != nil {
		return false
	}
	_, ok := q.gateway.seals.open(ofShown, text, q.from, server.Name, tool)
	return ok
}
