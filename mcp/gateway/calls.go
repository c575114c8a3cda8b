package gateway

import (
	"context"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

// Calls judges each tools/call and makes the permitted calls. pgfsm implements it with
// runner.ConfiguredRunner, one for each generation of the gateway: a call keeps the configuration
// with which it was dispatched.
type Calls interface {
	// Tools returns the tools of a listing that a client may see, in the server's order.
	Tools(*upstream.CachedListing, *policy.Identity) []Tool
	// Call takes one call through all gates and returns its answer.
	Call(context.Context, *ToolCall) Answer
	// Task returns the state of a task that Call answered with. CancelTask requests the end of the
	// task. If the error object is not nil, it is the answer in place of the result. That includes
	// a task of another client.
	Task(ctx context.Context, client Identity, id string) (result, failed jsontext.Value)
	CancelTask(ctx context.Context, client Identity, id string) (result, failed jsontext.Value)
}

// A Tool is one tool that a client may see.
type Tool struct {
	Name string
	Raw  jsontext.Value // the tool object, byte for byte as the server sent it, but for the operator's schema

	// SDKFaults says why the SDK in a client of a revision before 2026-07-28 rejects a list that
	// holds the tool. Empty: the SDK accepts it.
	SDKFaults string
}

// A Link is the session with the server of a call. This package's *link implements it, with the
// methods of its *upstream.Link.
type Link interface {
	Listing(ctx context.Context, maxAge time.Duration) (*upstream.CachedListing, error)
	Changed(number uint64) bool
	Modern() bool // the server speaks the stateless revision
	Call(ctx context.Context, c upstream.Call, onMessage func(wire.Message)) upstream.Returned
}

// An Answer is a result or an error object; exactly one is set.
type Answer struct {
	Result jsontext.Value
	Error  jsontext.Value
	// Native says that Result is the server's own, byte for byte. Otherwise the gateway made the
	// result, and it fits the client's revision except for "resultType", which the gateway adds
	// where a revision requires it.
	Native bool
	Judged // the run is named if the client does not get a native result
}

// A ToolCall is one tools/call of a client, with the names of the server and of the tool as the
// server knows them.
type ToolCall struct {
	From Identity
	// The identity provider's claims about the client of this request; nil for other clients.
	Identity  *policy.Identity
	Server    string
	Tool      string
	Arguments jsontext.Value // raw, as received; "{}" if absent
	// inputResponses and requestState of the params as one raw object; nil if both are absent.
	Extra jsontext.Value
	Meta  jsontext.Value // _meta object for the server; the link adds the members of its hop

	Tasks  bool // the client accepts a task as the answer
	Elicit bool // the client can show a URL (elicitation, mode url)
	Repeat bool // ShowURL's URL replaces the answer, and the client repeats its call

	// Connect returns the link with the call's server, and connects if there is none. The call uses
	// the link until it is answered.
	Connect func(context.Context) (Link, error)

	request *request // the client's request; nil in tests of Calls
	server  *server
	link    *link          // link in use; nil: none yet
	token   jsontext.Value // the client's progress token; nil if it gets no progress
	level   severity
	url     *urlElicitation // shown to a stateless client's user; nil: nothing
}

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
