package runner

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/deadline"
	"pgfsm/mcp/gateway"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
	"pgfsm/policy/redact"
	"pgfsm/states"
)

// agentPorts are the ports of an agent's run: one session with the server of the call.
type agentPorts struct {
	configured *ConfiguredRunner
	call       *gateway.ToolCall
	link       gateway.Link // set by List; Call sends over it
	cached     *upstream.CachedListing
	memory     *upstream.Memory   // memory for the result until the call is answered
	failed     *upstream.RPCError // the server's error answer to the call; nil: none
}

// List takes the session's cached listing. If the listing is too old, the session lists the tools
// again.
func (p *agentPorts) List(ctx context.Context, _ *states.ListTools) states.Event {
	if err := p.readListing(ctx); err != nil {
		return p.listingFailed(ctx, err)
	}
	return p.configured.viewOf(p.cached).listingEvent(p.call.Tool, p.cached.Age(time.Now()))
}

// listingFailed returns the event of a listing that could not be read: the server is down, or the
// run's time is over.
func (p *agentPorts) listingFailed(ctx context.Context, err error) states.Event {
	if ctx.Err() != nil { // a server that had no time is not down
		return listingStopped(ctx.Err())
	}

	down := upstream.Listing{
		Server: p.call.Server,
		Status: upstream.StatusDown,
		Code:   upstream.CodeUnreachable,
		Reason: err.Error(),
	}

	var why *upstream.LinkError
	if errors.As(err, &why) {
		down.Code, down.Reason = why.Code, why.Reason
	}

	return p.configured.newView(p.configured.maskListing(down)).listingEvent(p.call.Tool, 0)
}

// readListing connects and reads the listing. If its request ends a session that the server has
// lost, it tries once more with the next session.
func (p *agentPorts) readListing(ctx context.Context) (err error) {
	if p.link, err = p.call.Connect(ctx); err != nil {
		return err
	}
	if p.cached, err = p.link.Listing(ctx, p.configured.catalogMaxAge()); err == nil {
		return nil
	}

	next, failed := p.call.Connect(ctx)
	if failed != nil || next == p.link {
		return err
	}
	p.link = next
	p.cached, err = next.Listing(ctx, p.configured.catalogMaxAge())
	return err
}

// Changed reports whether the server has announced changed tools since the listing that judged the
// run.
func (p *agentPorts) Changed() (string, bool) {
	if p.cached == nil {
		return "", false
	}
	return p.call.Server, p.link.Changed(p.cached.Number)
}

// Call makes the one call, within the server's time. The run's time is paused meanwhile.
func (p *agentPorts) Call(ctx context.Context, c *states.CallTool) states.Event {
	defer deadline.Pause(ctx)()
	begun := time.Now()
	result := p.link.Call(ctx, upstream.Call{
		Server:    c.Server,
		Tool:      c.Tool,
		Arguments: c.Bytes,
		Extra:     c.Beside,
		Meta:      withTrace(p.call.Meta, c.Trace),
		Header:    p.paramHeaders(c),
		RunID:     c.Run,
		Listing:   p.cached.Number,
		Memory:    p.memory,
	}, func(m wire.Message) { p.call.OnMessage(ctx, m) })
	hits := p.configured.cleanResult(c, &result)
	p.configured.measureCall(c, nil, begun, result)
	p.failed = result.RPCError
	return p.configured.callEvent(ctx, result, hits)
}

// paramHeaders returns the headers that repeat arguments for a server of the stateless revision, as
// the tool's schema demands.
func (p *agentPorts) paramHeaders(c *states.CallTool) map[string]string {
	if !p.link.Modern() {
		return nil
	}
	for _, t := range p.configured.viewOf(p.cached).sent {
		if t.Name == c.Tool {
			return gateway.ParamHeader(t.Raw, c.Bytes.Bytes())
		}
	}
	return nil
}

// callEvent converts a cleaned tool result or error into a machine event.
func (r *ConfiguredRunner) callEvent(ctx context.Context, returned upstream.Returned, hits []redact.Hit) states.Event {
	if returned.Code == "" && returned.Result != nil {
		event := states.NewToolReturned(returned.Result, returned.Members)
		event.Redacted = hits
		return event
	}
	code, reason := policy.Code(returned.Code), returned.Reason
	if errors.Is(ctx.Err(), context.Canceled) {
		code, reason = policy.CodeCancelled, "The run was cancelled during the call."
	}
	return &states.EffectFailed{Code: code, Effect: states.Effect(returned.Effect), Reason: r.Secrets.String(reason), Redacted: hits}
}

// withTrace returns the _meta of a call with the permit's trace context in place of the agent's.
// Without one, the agent's stays.
func withTrace(meta jsontext.Value, c *states.TraceContext) jsontext.Value {
	if c == nil {
		return meta
	}
	var own wire.Object
	own.Add("traceparent", wire.Quote(c.Parent))
	if c.State != "" {
		own.Add("tracestate", wire.Quote(c.State))
	}
	wire.ForEachMember(meta, func(m wire.Piece) {
		if m.Name != "traceparent" && m.Name != "tracestate" {
			own.Add(m.Name, m.Value)
		}
	})
	return own.Value()
}
