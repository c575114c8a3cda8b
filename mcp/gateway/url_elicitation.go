package gateway

import (
	"strings"

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
func (e *urlElicitation) result() []byte {
	var questions wire.Object
	questions.Add("decide", ask.NewQuestion("elicitation/create", e.params()))
	return ask.InputRequired(questions.Done(), heldState+e.id)
}

// heldState begins the request state of a held call. It is not sealed, so that every gateway on the ledger takes it: whether the client opened
// the URL decides nothing, and the call is judged as one without a state. No sealed state begins with it.
const heldState = "held."

// ofHeldCall reports whether a stateless client brings back that it was shown where its call is decided.
func (q *request) ofHeldCall(in clientInput) bool {
	if q.session != nil || in.state == nil {
		return false
	}
	text, err := wire.Text(in.state)
	return err == nil && strings.HasPrefix(text, heldState)
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
