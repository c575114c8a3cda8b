package telemetry

import (
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// A Tracer exports spans: of each request of an agent, and of each call of a server. A nil one
// exports nothing and draws no ids. It is safe for concurrent use, and none of its methods waits
// for the collector but [Tracer.Shutdown].
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	sample   float64
}

// A Context is the W3C Trace Context that a call of a server carries.
type Context struct {
	Span   string // id of the span of the agent's request; empty: the call has a separate trace
	Parent string // traceparent: it names the span of the call
	State  string // tracestate
}

// A place holds the spans of a request: its own, and its parent.
type requestSpans struct {
	own    trace.SpanContext
	parent trace.SpanContext // the agent's; zero: there is none
}

type requestSpansKey struct{}

// Lengths in bytes up to which members of an agent's trace context are read.
const (
	maxTraceParent = 64
	maxTraceState  = 512
)

// Begin draws the id of the span of an agent's request, and returns a context that has it. The
// request's own trace context is its parent, if it is valid: the request is part of that trace
// then. Whether the spans are exported is decided here, whatever the agent's context says about it.
func (t *Tracer) Begin(ctx context.Context, traceparent, tracestate string) context.Context {
	if t == nil {
		return ctx
	}
	p := &requestSpans{}
	if len(traceparent) <= maxTraceParent {
		if len(tracestate) > maxTraceState {
			tracestate = ""
		}
		carrier := propagation.MapCarrier{"traceparent": traceparent, "tracestate": tracestate}
		p.parent = trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
	}
	// With a valid parent, the span is part of the agent's trace; otherwise it begins one.
	config := trace.SpanContextConfig{TraceID: p.parent.TraceID(), SpanID: newSpanID(),
		TraceState: p.parent.TraceState()}
	if !p.parent.IsValid() {
		config.TraceID = newTraceID()
	}
	p.own = trace.NewSpanContext(config).WithTraceFlags(t.drawFlags())
	return context.WithValue(ctx, requestSpansKey{}, p)
}

// TraceID returns the id of the trace of the request that ctx belongs to; "" if there is none.
func TraceID(ctx context.Context) string {
	if p, ok := ctx.Value(requestSpansKey{}).(*requestSpans); ok {
		return p.own.TraceID().String()
	}
	return ""
}

// CallOf draws the context of a call that belongs to the request of ctx. It returns nil if the
// request has none.
func CallOf(ctx context.Context) *Context {
	p, ok := ctx.Value(requestSpansKey{}).(*requestSpans)
	if !ok {
		return nil
	}
	call := p.own.WithSpanID(newSpanID())
	return &Context{Span: p.own.SpanID().String(), Parent: formatParent(call), State: call.TraceState().String()}
}

// NewCall draws the context of a call with a separate trace.
func (t *Tracer) NewCall() *Context {
	if t == nil {
		return nil
	}
	call := trace.NewSpanContext(trace.SpanContextConfig{TraceID: newTraceID(),
		SpanID: newSpanID()}).WithTraceFlags(t.drawFlags())
	return &Context{Parent: formatParent(call)}
}

// drawFlags decides about a trace. The trace's id has no say, because agents choose it.
func (t *Tracer) drawFlags() trace.TraceFlags {
	return trace.TraceFlags(0).WithSampled(rand.Float64() < t.sample)
}

func formatParent(c trace.SpanContext) string {
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + c.TraceFlags().String()
}

// Served exports the span of the request of ctx.
func (t *Tracer) Served(ctx context.Context, o Operation) {
	p, ok := ctx.Value(requestSpansKey{}).(*requestSpans)
	if t == nil || !ok || !p.own.IsSampled() {
		return
	}
	transport := transportTCP
	if o.Stdio {
		transport = transportPipe
	}
	t.exportSpan(p.own, p.parent, trace.SpanKindServer, &o, append(o.spanAttributes(), attrTransport.String(transport)))
}

// Called exports the span of a call of a server. If the call has a separate trace, the span links
// to the span of the agent's request. of is the context that was drawn for that request; nil if
// there was none.
func (t *Tracer) Called(c, agentCall *Context, o Operation) {
	if t == nil || c == nil {
		return
	}
	span := c.spanContext()
	if !span.IsSampled() {
		return
	}
	var parent trace.SpanContext
	var links []trace.SpanStartOption
	if c.Span != "" {
		parent = span.WithSpanID(spanID(c.Span))
	} else if agentCall != nil {
		request := agentCall.spanContext()
		links = append(links, trace.WithLinks(trace.Link{SpanContext: request.WithSpanID(spanID(agentCall.Span))}))
	}
	t.exportSpan(span, parent, trace.SpanKindClient, &o, append(o.spanAttributes(), o.peerAttributes()...), links...)
}

// exportSpan makes a span whose ids were drawn before, and ends it.
func (t *Tracer) exportSpan(own, parent trace.SpanContext, kind trace.SpanKind, o *Operation,
	attributes []attribute.KeyValue,
	options ...trace.SpanStartOption) {
	ctx := trace.ContextWithSpanContext(context.WithValue(context.Background(), drawnKey{}, own), parent)
	_, span := t.tracer.Start(ctx, o.spanName(),
		append(options, trace.WithSpanKind(kind), trace.WithTimestamp(o.Begun), trace.WithAttributes(attributes...))...)
	if o.ErrorType != "" {
		span.SetStatus(codes.Error, o.ErrorType)
	}
	span.End(trace.WithTimestamp(o.Begun.Add(o.Took)))
}

// spanContext reads a context that was drawn here.
func (c *Context) spanContext() trace.SpanContext {
	carrier := propagation.MapCarrier{"traceparent": c.Parent, "tracestate": c.State}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(),
		carrier)).WithRemote(false)
}

// spanID reads the id of a span; the zero value is not valid.
func spanID(hex string) trace.SpanID {
	id, _ := trace.SpanIDFromHex(hex)
	return id
}

// drawnKey is the key of the ids that a span must get.
type drawnKey struct{}

// drawn is the [sdktrace.IDGenerator] of spans whose ids were drawn before.
type drawn struct{}

func (drawn) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	c, _ := ctx.Value(drawnKey{}).(trace.SpanContext)
	return c.TraceID(), c.SpanID()
}

func (drawn) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	c, _ := ctx.Value(drawnKey{}).(trace.SpanContext)
	return c.SpanID()
}

func newTraceID() (id trace.TraceID) {
	_, _ = crand.Read(id[:]) // it never fails
	return id
}

func newSpanID() (id trace.SpanID) {
	_, _ = crand.Read(id[:])
	return id
}

// Shutdown exports what is left until ctx is done, and for [shutdownTime] at most.
func (t *Tracer) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownTime)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// shutdownTime bounds the time that a service waits for its collector when it ends.
const shutdownTime = 5 * time.Second
