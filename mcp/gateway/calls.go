package gateway

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// Calls decides about tools/call, makes those that may be made, and knows what became of them.
type Calls interface {
	// Tools returns the tools of a listing that agents may see, in the server's order.
	Tools(*upstream.Kept) []Tool
	// Call takes one call through everything that may refuse it. It returns when there is something to answer.
	Call(context.Context, *Ask) Answer
	// Task returns how a task stands that Call answered with; CancelTask asks that it end. The error object is nil, or what is
	// answered in place of the result: also where the task is not the caller's.
	Task(ctx context.Context, who Identity, id string) (result, failed jsontext.Value)
	CancelTask(ctx context.Context, who Identity, id string) (result, failed jsontext.Value)
}

// Tool is one tool that agents may see.
type Tool struct {
	Name string
	Raw  jsontext.Value // the tool object, byte for byte as the server sent it
}

// An Ask is one tools/call of a client, with the native names of server and tool.
type Ask struct {
	From      Identity
	Server    string
	Tool      string
	Arguments jsontext.Value // raw, as received; "{}" if there were none
	Extra     jsontext.Value // the members inputResponses and requestState of the params, as one raw object; nil if there are none

	Progress bool                                   // the client asked for progress
	Tasks    bool                                   // the client takes a task as the answer
	Elicit   bool                                   // the client can be shown a URL (elicitation, mode url)
	Say      func(done, total float64, note string) // sends progress under the client's own token; does nothing if Progress is false
	Show     func(url, note, id string)             // has the client show a URL; what its user does is not waited for
	Returns  bool                                   // what Show is given takes the place of the answer, and the client asks once more

	// Link is the session with the call's server. It connects if need be.
	Link func(context.Context) (*upstream.Link, error)
	// Meta is the _meta object that goes with the call: what does not belong to one hop. The link adds its own.
	Meta jsontext.Value
	// Header are the values of the Mcp-Param headers that the tool's schema asks for, made from the arguments.
	Header map[string]string
	// Relay is given what the server says during the call.
	Relay func(wire.Message)
}

// An Answer is a result or an error object; exactly one is set.
type Answer struct {
	Result jsontext.Value
	Error  jsontext.Value
	// Native: Result is the server's own, spliced. What is not is made here, and is an answer in the client's revision already,
	// but for "resultType", which the gateway adds for those who need one.
	Native bool
	RunID  string // the run that Result came of; named if a native result is kept from the client
}
