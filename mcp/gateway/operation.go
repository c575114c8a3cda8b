package gateway

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// An Operation describes a client's request that was answered.
type Operation struct {
	Method       string // empty if MCP has no request of this name
	Server, Tool string // set for a tools/call whose server is known
	// A code that JSON-RPC defines, [ToolError] or [OtherError]; empty: the request succeeded.
	ErrorType string
	Begun     time.Time
	Took      time.Duration
	ID        string // the request's id
	Protocol  string // the revision in force; empty before initialize
	Stdio     bool   // the client is connected over standard input
	Judged           // set for a tools/call
}

// Judged is the outcome of a call at the gates; empty where no run began.
type Judged struct {
	Run      string
	Decision string
	Gate     string // the deciding gate
}

// Error types of OpenTelemetry's conventions.
const (
	ToolError  = "tool_error" // a result with isError
	OtherError = "_OTHER"     // an error with a code that a server chose
)

// The members of _meta, and the headers, that carry the context of a trace (W3C Trace Context,
// SEP-414).
const (
	metaTraceParent = "traceparent"
	metaTraceState  = "tracestate"
)

// beginTrace calls Begin for a request. The trace context is from _meta, or else from the HTTP
// request. It returns the request's context.
func (g *Gateway) beginTrace(ctx context.Context, q *request) context.Context {
	if g.options.Begin == nil || !q.Request.Request() {
		return ctx
	}
	meta := wire.Member(q.Params, "_meta")
	parent, err := wire.Text(wire.Member(meta, metaTraceParent))
	if err != nil {
		// Of two values, programs would use different ones.
		if values := q.HTTP.Values(metaTraceParent); len(values) == 1 {
			parent = values[0]
		}
		return g.options.Begin(ctx, parent, strings.Join(q.HTTP.Values(metaTraceState), ","))
	}

	state, _ := wire.Text(wire.Member(meta, metaTraceState))
	return g.options.Begin(ctx, parent, state)
}

// reportOperation calls Observe for an answered request.
func (q *request) reportOperation(ctx context.Context, begun time.Time) {
	tell := q.config().Observe
	if tell == nil || q.Response() || q.Notification() {
		return
	}

	o := &q.observed
	if m := methodOf(fromClient, q.Method); m != nil {
		o.Method = m.name
	}
	if o.ID = string(q.ID); q.ID.Kind() == '"' {
		o.ID, _ = wire.Text(q.ID) // package wire has read the id strictly
	}

	o.Begun, o.Took, o.Protocol, o.Stdio = begun, time.Since(begun), q.Protocol, q.HTTP == nil
	tell(ctx, *o)
}

// noteError stores the code of an error object.
func (q *request) noteError(failed jsontext.Value) {
	q.observed.ErrorType = OtherError
	code, _ := strconv.Atoi(string(wire.Member(failed, "code")))
	switch code {
	case wire.ParseError, wire.InvalidRequest, wire.MethodNotFound, wire.InvalidParams, wire.InternalError,
		wire.HeaderMismatch, wire.MissingCapability, wire.UnsupportedVersion, codeBusy, notFound, codeShowsURL:
		q.observed.ErrorType = strconv.Itoa(code)
	default: // a server's code, which may be any number
	}
}

// noteResult stores whether the result of an answer says that it is an error.
func (q *request) noteResult(a Answer) {
	if IsError(a.Result, a.Members) {
		q.observed.ErrorType = ToolError
	}
}

// IsError reports whether the result of a tool says that it is an error. The members are nil if they
// were not read yet.
func IsError(result jsontext.Value, members []wire.Piece) bool {
	if members == nil {
		return string(wire.Member(result, "isError")) == "true"
	}
	i := slices.IndexFunc(members, func(p wire.Piece) bool { return p.Name == "isError" })
	return i >= 0 && string(members[i].Value) == "true"
}
