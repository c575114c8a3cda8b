package states

import (
	"errors"
	"strings"
)

// A TraceContext is the W3C Trace Context that the run's call carries in _meta. It is an input,
// because the permit covers it; no gate judges it and no approval binds it.
type TraceContext struct {
	// The id of the span of the agent's request; empty for an approved call, which has a separate
	// trace.
	Span   string `json:"span,omitempty"`
	Parent string `json:"traceparent"` // names the span of the call; its flags are 00 or 01
	State  string `json:"tracestate,omitempty"`
}

// Lengths of the members in bytes.
const (
	traceParentBytes = len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	maxTraceState    = 512
)

// TraceID returns the id of the trace; "" without a context, or if it is not valid.
func (c *TraceContext) TraceID() string {
	if c == nil || len(c.Parent) != traceParentBytes {
		return ""
	}
	return c.Parent[3:35]
}

// Check refuses a context that pgfsm does not draw. No context is valid.
func (c *TraceContext) Check() error {
	if c == nil {
		return nil
	}
	p := c.Parent
	switch {
	case len(p) != traceParentBytes || p[:3] != "00-" || !isID(p[3:35]) || p[35] != '-' || !isID(p[36:52]) ||
		p[52:] != "-00" && p[52:] != "-01":
		return errors.New("the traceparent is not one of version 00")
	case c.Span != "" && (len(c.Span) != 16 || !isID(c.Span)):
		return errors.New("the span is not the id of a span")
	case len(c.State) > maxTraceState || strings.ContainsFunc(c.State, func(r rune) bool { return r < ' ' || r > '~' }):
		return errors.New("the tracestate is too long, or is not printable ASCII")
	}
	return nil
}

// isID reports whether s consists of lower-case hexadecimal digits, and not of zeros alone.
func isID(s string) bool {
	return strings.Trim(s, "0123456789abcdef") == "" && strings.Trim(s, "0") != ""
}

// equal reports whether two contexts are equal.
func (c *TraceContext) equal(other *TraceContext) bool {
	if c == nil || other == nil {
		return c == other
	}
	return *c == *other
}

// traceContext is the context of the run's call. An approved call has its own.
func (r *Run) traceContext() *TraceContext {
	if a := r.facts.Approved; a != nil {
		return a.trace
	}
	return r.request.Trace
}
