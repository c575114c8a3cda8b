package gateway

import (
	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/wire"
)

// A urlElicitation has a client's user open a URL, where a call can be approved.
type urlElicitation struct{ url, message, id string }

func (e *urlElicitation) params() []byte {
	var b wire.Object
	b.Add("mode", []byte(`"url"`))
	b.Add("message", wire.Quote(e.message))
	b.Add("url", wire.Quote(e.url))
	b.Add("elicitationId", wire.Quote(e.id))
	return b.Done()
}

// result asks a stateless client to show the URL and to repeat its call.
func (e *urlElicitation) result(q *request, server *Server, tool string) []byte {
	var questions wire.Object
	questions.Add("decide", ask.NewQuestion("elicitation/create", e.params()))
	return ask.InputRequired(questions.Done(), q.gateway.asks.States.Seal(ask.StateURL, e.id, q.From, server.Name, tool))
}

// showURL has the client show a URL to its user: a session at once, a stateless client in place of the answer.
func (c *toolCall) showURL(url, message, id string) {
	if !c.capabilities.ShowsURLs() {
		return
	}
	e := &urlElicitation{url, message, id}
	s := c.q.session
	if s == nil {
		c.elicitation = e
		return
	}
	if s.requests.Count(nil) >= ask.MaxOwnRequests {
		return
	}
	request := s.requests.Add(&ask.Request{Method: "elicitation/create"})
	if c.out.Send(wire.Call(nil, request, "elicitation/create", e.params())) != nil {
		s.requests.Take(request)
	}
}
