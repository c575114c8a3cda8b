package gateway

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

// Calls decides about tools/call and makes the calls that may be made.
type Calls interface {
	// Tools returns the tools of a listing that a client may see, in the server's order.
	Tools(*upstream.Kept, *policy.Identity) []Tool
	// Call takes one call through all gates and returns its answer.
	Call(context.Context, *Ask) Answer
	// Task returns the state of a task that Call answered with. CancelTask asks that the task end. The error object is nil, or answers in
	// place of the result, also if the task is not the client's.
	Task(ctx context.Context, client Identity, id string) (result, failed jsontext.Value)
	CancelTask(ctx context.Context, client Identity, id string) (result, failed jsontext.Value)
}

// A Tool is one tool that a client may see.
type Tool struct {
	Name string
	Raw  jsontext.Value // the tool object, byte for byte as the server sent it, but for the operator's schema

	// SDKFaults says why the SDK of a client of a revision before 2026-07-28 rejects a list with the tool. Empty: it accepts it.
	SDKFaults string
}

// An Ask is one tools/call of a client, with the names of the server and of the tool as the server knows them.
type Ask struct {
	From      Identity
	Identity  *policy.Identity // what an identity provider says about the client with this request; nil for other clients
	Server    string
	Tool      string
	Arguments jsontext.Value // raw, as received; "{}" if there were none
	Extra     jsontext.Value // inputResponses and requestState of the params as one raw object; nil if there are none

	Progress bool                                   // the client asked for progress
	Tasks    bool                                   // the client accepts a task as the answer
	Elicit   bool                                   // the client can show a URL (elicitation, mode url)
	Say      func(done, total float64, note string) // sends progress under the client's token; without Progress it does nothing
	Show     func(url, note, id string)             // has the client show a URL; it does not wait for the user
	Returns  bool                                   // the URL takes the place of the answer, and the client repeats its call

	// Link returns the link with the call's server, and connects if there is none.
	Link func(context.Context) (Link, error)
	// Meta is the _meta object that goes with the call. The link adds the members of its hop.
	Meta jsontext.Value
	// Header are the values of the Mcp-Param headers that the tool's schema asks for. Link sets them.
	Header map[string]string
	// Relay takes what the server sends during the call.
	Relay func(wire.Message)
}

// A Link is the session with the server of a call.
type Link interface {
	Listing(ctx context.Context, maxAge time.Duration) (*upstream.Kept, error)
	Changed(number uint64) bool
	Call(ctx context.Context, c upstream.Call, relay func(wire.Message)) upstream.Returned
}

// An Answer is a result or an error object; exactly one is set.
type Answer struct {
	Result jsontext.Value
	Error  jsontext.Value
	// Native says that Result is the server's own, byte for byte. Other results are made here and fit the client's revision, but for
	// "resultType", which the gateway adds where a revision wants it.
	Native bool
	Judged // the run is named if the client does not get a native result
}
