package gateway

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// An Operation is a request of a client that was answered.
type Operation struct {
	Method       string // empty if MCP has no request of this name
	Server, Tool string // of a tools/call whose server is known
	ErrorType    string // a code of JSON-RPC's own, [ToolError] or [OtherError]; empty: the request succeeded
	Took         time.Duration
}

// Error types of OpenTelemetry's conventions.
const (
	ToolError  = "tool_error" // a result with isError
	OtherError = "_OTHER"     // an error of a code that a server chose
)

// observed tells of a request that was answered.
func (g *Gateway) observed(q *request, begun time.Time) {
	if g.options.Observe == nil || q.Response() || q.Notification() {
		return
	}
	if m := methodOf(fromClient, q.Method); m != nil {
		q.observed.Method = m.name
	}
	q.observed.Took = time.Since(begun)
	g.options.Observe(q.observed)
}

// noteError keeps the code of an error object.
func (q *request) noteError(failed jsontext.Value) {
	q.observed.ErrorType = OtherError
	code, err := strconv.ParseInt(string(wire.Member(failed, "code")), 10, 32)
	if err == nil && (code >= -32700 && code <= -32600 || code >= -32099 && code <= -32000) { // servers may send any number
		q.observed.ErrorType = strconv.FormatInt(code, 10)
	}
}

// noteResult keeps whether a result says that it is an error.
func (q *request) noteResult(result jsontext.Value) {
	if IsError(result) {
		q.observed.ErrorType = ToolError
	}
}

// IsError reports whether the result of a tool says that it is an error.
func IsError(result jsontext.Value) bool { return string(wire.Member(result, "isError")) == "true" }
