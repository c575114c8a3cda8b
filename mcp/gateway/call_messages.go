package gateway

import (
	"context"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// OnMessage relays a message that the server sends during the call.
func (c *ToolCall) OnMessage(ctx context.Context, m wire.Message) {
	if c.link != nil {
		c.link.relayDuring(ctx, c.request, c.level, m)
	}
}

// SendProgress sends progress of the gateway's own under the client's token, if the client wants
// progress.
func (c *ToolCall) SendProgress(done, total float64, message string) {
	if c.token == nil {
		return
	}
	var b wire.Object
	b.Add("progressToken", c.token)
	b.Add("progress", strconv.AppendFloat(nil, done, 'f', -1, 64))
	if total > 0 {
		b.Add("total", strconv.AppendFloat(nil, total, 'f', -1, 64))
	}
	if message != "" {
		b.Add("message", wire.Quote(message))
	}
	// The front notices a client that is gone.
	_ = c.request.Out.Send(wire.Call(nil, nil, noteProgress, b.Value()))
}

// ShowURL sends the client a URL at which a user can approve the call. The client of a session gets
// it at once, a stateless client in place of the answer. ShowURL does not wait for the user.
func (c *ToolCall) ShowURL(url, message, id string) {
	if !c.Elicit {
		return
	}
	e := &urlElicitation{url, message, id}
	if c.Repeat {
		c.url = e
		return
	}
	questions := &c.request.session.questions
	number, ok := questions.addQuestion(&question{method: methodElicit})
	if ok && c.request.Out.Send(wire.Call(nil, number, methodElicit, e.asParams(true))) != nil {
		questions.removeQuestion(number)
	}
}

// A urlElicitation asks a client to have its user open a URL.
type urlElicitation struct{ url, message, id string }

// asParams encodes the elicitation. Revision 2026-07-28 has no elicitationId.
func (e *urlElicitation) asParams(withID bool) jsontext.Value {
	var b wire.Object
	b.Add("mode", []byte(`"url"`))
	b.Add("message", wire.Quote(e.message))
	b.Add("url", wire.Quote(e.url))
	if withID {
		b.Add("elicitationId", wire.Quote(e.id))
	}
	return b.Value()
}

// heldState begins the request state of a held call. It is not sealed, so that every gateway on the
// ledger accepts it. That is safe: the call is judged as one without a state, whether or not the
// user opened the URL. No sealed state begins with it.
const heldState = "held."

// asResult asks a stateless client to show the URL and to repeat its call.
func (e *urlElicitation) asResult() jsontext.Value {
	var question wire.Object
	question.Add("method", wire.Quote(methodElicit))
	question.Add("params", e.asParams(false))

	var result wire.Object
	result.Add("resultType", []byte(`"input_required"`))
	result.Add("inputRequests", wire.Single("decide", question.Value()))
	result.Add("requestState", wire.Quote(heldState+e.id))
	return result.Value()
}
