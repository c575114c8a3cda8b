package gateway

import "pgfsm/mcp/wire"

// A shown is a URL that a client has a person open.
type urlElicitation struct{ url, note, id string }

// params is the params of the elicitation.
func (s *urlElicitation) params() []byte {
	var b wire.Object
	b.Add("mode", []byte(`"url"`))
	b.Add("message", wire.Quote(s.note))
	b.Add("url", wire.Quote(s.url))
	b.Add("elicitationId", wire.Quote(s.id))
	return b.Done()
}

// result is the result that has a stateless client show the URL and ask once more.
func (s *urlElicitation) result(q *request, server *Server, tool string) []byte {
	var asks wire.Object
	asks.Add(urlQuestion, inputRequest("elicitation/create", s.params()))
	return inputRequired(asks.Done(), q.gateway.states.seal(stateURL, s.id, q.From, server.Name, tool))
}

// show has the client show a URL to a person: one with a session at once, another in place of the answer.
func (c *toolCall) showURL(url, note, id string) {
	if !c.capabilities.showsURLs() {
		return
	}
	w := &urlElicitation{url, note, id}
	s := c.q.session
	if s == nil {
		c.elicitation = w
		return
	}
	if s.countOwnRequests() >= maxOwnRequests {
		return
	}
	ours := s.addClientRequest(&clientRequest{method: "elicitation/create"})
	if c.out.send(wire.Call(nil, ours, "elicitation/create", w.params())) != nil {
		s.takeClientRequest(ours)
	}
}

// shownAs is the name of the one question in such a result.
const urlQuestion = "decide"
