package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// Identity is who a client is, as far as it was verified. Sessions, tasks and handles are bound to it.
type Identity struct {
	Name  string // of the token; "anonymous" without one
	Token string // the token's id; empty without one
}

// Server is one upstream server as agents are let see it.
type Server struct {
	Name   string
	Expose Expose
}

// Options of a gateway. What is nil is not offered, and what is zero has its default.
type Options struct {
	Servers   []Server            // in the operator's order
	Upstreams *upstream.Upstreams // has at least these servers
	Calls     Calls
	// Authenticate says whose a bearer token is. Nil: no token is anybody's.
	Authenticate func(ctx context.Context, token string) (Identity, error)
	// Status says how a run of the caller stands, as one JSON text; nil if the caller has no such run. Nil: there is no GET /status/{run}.
	Status func(ctx context.Context, who Identity, run string) ([]byte, error)
	// Passed is told what passes besides tools/call, before it does. An error keeps it from passing.
	Passed func(context.Context, Passed) error
	// Mask takes the operator's secrets out of what a server says.
	Mask func([]byte) []byte
	// Hosts are the values of the Host header that are served. Origins must be one of them too.
	Hosts  []string
	MaxAge time.Duration // how long a catalog is kept (catalog_max_age)
	Tasks  bool          // clients of the Tasks extension get a task for a call that waits
	Limits Limits
	Info   upstream.Info // how the gateway names itself to clients
	Log    *slog.Logger
}

// Passed is one message that passes besides tools/call: who let which server hear or say what.
type Passed struct {
	Identity  Identity
	Server    string
	Direction string // ToServer or ToClient
	Method    string
	Params    jsontext.Value // raw; nil if there are none. What is kept of it is its digest
}

// Directions of [Passed].
const (
	ToServer = "to_server"
	ToClient = "to_client"
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

// A request is one message of a client, with all that decides about it. One goroutine owns it.
type request struct {
	wire.Message
	gateway  *Gateway
	from     Identity
	at       *endpoint
	session  *session    // nil: the client speaks the stateless revision
	protocol string      // the revision in force for this message; empty before initialize
	header   http.Header // nil over stdio; only for what the revision says belongs there
	out      outlet
	about    about // what a stateless client says of itself; see learn
}

// modern reports whether the message is of the stateless revisions.
func (q *request) modern() bool { return q.protocol >= Stateless }

// Stateless is the first revision without sessions.
const Stateless = "2026-07-28"

// An outlet takes what is said to the client while its request is under way, in order. Send must not be called after the
// request was answered. An error means that the client is gone.
type outlet interface {
	Send(message []byte) error
}

// An endpoint is one place where clients come: all servers under joined names, or one under its own.
type endpoint struct {
	server  *Server // nil: all
	servers []*Server
}
