package gateway

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// An Operation is a request of a client that was answered.
type Operation struct {
	Method       string // empty if MCP has no request of this name
	Server, Tool string // of a tools/call whose server is known
	ErrorType    string // a code of JSON-RPC's own, [ToolError] or [OtherError]; empty: the request succeeded
	Begun        time.Time
	Took         time.Duration
	ID           string // of the request
	Protocol     string // the revision in force; empty before initialize
	Stdio        bool   // the client is connected over standard input
	Judged              // of a tools/call
}

// Judged is what became of a call at the gates; empty where no run began.
type Judged struct {
	Run      string
	Decision string
	Gate     string // that decided
}

// Error types of OpenTelemetry's conventions.
const (
	ToolError  = "tool_error" // a result with isError
	OtherError = "_OTHER"     // an error of a code that a server chose
)

// The members of _meta, and the headers, that have the context of a trace (W3C Trace Context, SEP-414).
const (
	metaTraceParent = "traceparent"
	metaTraceState  = "tracestate"
)

// begin tells of a request, with the trace context of its _meta, or else of the HTTP request that it came with. It returns the context of the request.
func (g *Gateway) begin(ctx context.Context, q *request) context.Context {
	if g.options.Begin == nil || !q.Request.Request() {
		return ctx
	}
	meta := wire.Member(q.Params, "_meta")
	parent, err := wire.Text(wire.Member(meta, metaTraceParent))
	if err != nil {
		if values := q.HTTP.Values(metaTraceParent); len(values) == 1 { // of two, programs would take different ones
			parent = values[0]
		}
		return g.options.Begin(ctx, parent, strings.Join(q.HTTP.Values(metaTraceState), ","))
	}

	state, _ := wire.Text(wire.Member(meta, metaTraceState))
	return g.options.Begin(ctx, parent, state)
}

// observe tells of a request that was answered.
func (q *request) observe(ctx context.Context, begun time.Time) {
	tell := q.config().Observe
	if tell == nil || q.Response() || q.Notification() {
		return
	}

	o := &q.observed
	if m := methodOf(fromClient, q.Method); m != nil {
		o.Method = m.name
	}
	if o.ID = string(q.ID); q.ID.Kind() == '"' {
		o.ID, _ = wire.Text(q.ID) // package wire reads ids strictly
	}

	o.Begun, o.Took, o.Protocol, o.Stdio = begun, time.Since(begun), q.Protocol, q.HTTP == nil
	tell(ctx, *o)
}

// noteError keeps the code of an error object.
func (q *request) noteError(failed jsontext.Value) {
	q.observed.ErrorType = OtherError
	code, _ := strconv.Atoi(string(wire.Member(failed, "code")))
	switch code {
	case wire.ParseError, wire.InvalidRequest, wire.MethodNotFound, wire.InvalidParams, wire.InternalError,
		wire.HeaderMismatch, wire.MissingCapability, wire.UnsupportedVersion, codeBusy, notFound, codeShowsURL:
		q.observed.ErrorType = strconv.Itoa(code)
	default: // of a server, which could send any number
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
