package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/deadline"
	"pgfsm/mcp/gateway"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
	"pgfsm/states"
)

// runPorts returns the handler of a run that may call any server, in sessions of the requester's
// identity. Call end when the run has ended.
func (r *ConfiguredRunner) runPorts(run *states.Run) (handler *states.Live, end func()) {
	servers := r.serverPorts(run, requesterOf(run.Request()).Owner())
	return &states.Live{
		Watcher:   servers,
		Tools:     servers,
		Completer: completion{r},
		Caller:    servers,
	}, servers.client.Close
}

// requesterOf returns the identity that a request was recorded with.
func requesterOf(q states.Request) gateway.Identity {
	identity := gateway.Identity{Name: q.Actor}
	if q.Identity != nil {
		identity.Client, identity.OnBehalfOf = q.Identity.Client, q.Identity.OnBehalfOf
	}
	return identity
}

func (r *ConfiguredRunner) serverPorts(run *states.Run, owner string) *serverPorts {
	return &serverPorts{
		configured: r,
		run:        run,
		client:     r.Upstreams.Client(owner),
		listings:   make(map[string]uint64),
	}
}

// serverPorts are the ports of one run to all servers.
type serverPorts struct {
	configured *ConfiguredRunner
	run        *states.Run // nil for a mere listing of tools
	only       []string    // without a run: the servers to list; empty: all
	client     *upstream.Client
	listings   map[string]uint64 // key: the server; value: the number of the listing that judged the run
}

// List asks every server for its tools. If the server of the call is known, List asks only that
// server.
func (p *serverPorts) List(ctx context.Context, _ *states.ListTools) states.Event {
	listed := &states.ToolsListed{}
	listings := p.client.List(ctx, p.callServer()...)
	if err := ctx.Err(); err != nil { // a server that had no time is not down
		return listingStopped(err)
	}
	for _, l := range listings {
		p.listings[l.Server] = l.Number
		listed.Servers = append(listed.Servers, p.configured.maskListing(l))
	}
	return listed
}

// callServer returns the server that the run would call, from its plan or, for an operator's call,
// from its request; none if unknown.
func (p *serverPorts) callServer() []string {
	if p.run == nil {
		return p.only
	}
	if plan := p.run.Plan(); plan != nil {
		return []string{plan.Server}
	}
	if p.run.Request().Kind != states.KindCall {
		return nil
	}
	plan, _ := policy.ReadCall(p.run.Request().Text, p.configured.Bundle.Limits())
	if plan == nil || !slices.Contains(p.configured.Bundle.Servers(), plan.Server) {
		return nil // the run is blocked later
	}
	return []string{plan.Server}
}

// Changed reports whether the server that the run would call has announced changed tools since its
// listing. Announcements of other servers do not concern this run.
func (p *serverPorts) Changed() (string, bool) {
	plan := p.run.Plan()
	if plan == nil || p.listings[plan.Server] == 0 {
		return "", false
	}
	return plan.Server, p.client.Changed(plan.Server, p.listings[plan.Server])
}

// Call makes the one call, within the server's time. The run's time is paused meanwhile.
func (p *serverPorts) Call(ctx context.Context, c *states.CallTool) states.Event {
	defer deadline.Pause(ctx)()
	begun := time.Now()
	result := p.client.Call(ctx, upstream.Call{
		Server:    c.Server,
		Tool:      c.Tool,
		Arguments: c.Bytes,
		Extra:     c.Beside,
		Meta:      withTrace(nil, c.Trace),
		RunID:     c.Run,
		Listing:   p.listings[c.Server],
	})
	p.configured.measureCall(c, p.run.Request().Trace, begun, result)
	return p.configured.callEvent(ctx, result)
}

// List asks every server, or only the named ones, for their tools, within the time of a run.
func (r *Runner) List(ctx context.Context, only ...string) (*states.ToolsListed, error) {
	active := r.active.Acquire()
	defer active.Release()
	ctx, cancel := context.WithTimeout(ctx, active.Value.runTimeout())
	defer cancel()
	ports := active.Value.serverPorts(nil, "")
	ports.only = only
	defer ports.client.Close()
	switch e := ports.List(ctx, nil).(type) {
	case *states.ToolsListed:
		return e, nil
	case *states.EffectFailed:
		return nil, fmt.Errorf("the tools cannot be listed: %s", e.Reason)
	default:
		return nil, errors.New("the tools cannot be listed")
	}
}

// linkPorts are the ports of an agent's run: one session with the server of the call.
type linkPorts struct {
	configured *ConfiguredRunner
	call       *gateway.ToolCall
	link       gateway.Link
	cached     *upstream.CachedListing
	memory     *upstream.Memory   // memory for the result until the call is answered
	failed     *upstream.RPCError // the server's error answer to the call; nil: none
}

// List takes the session's cached listing. If the listing is too old, the session lists the tools
// again.
func (p *linkPorts) List(ctx context.Context, _ *states.ListTools) states.Event {
	link, err := p.call.Connect(ctx)
	if err == nil {
		p.link = link
		p.cached, err = link.Listing(ctx, p.configured.catalogMaxAge())
	}

	if p.link != nil && err != nil { // the failed request may have ended a session that the server lost
		if link, failed := p.call.Connect(ctx); failed == nil && link != p.link {
			p.link = link
			p.cached, err = link.Listing(ctx, p.configured.catalogMaxAge())
		}
	}

	if err == nil {
		return p.configured.viewOf(p.cached).listingEvent(p.call.Tool, p.cached.Age(time.Now()))
	}
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

// Changed reports whether the server has announced changed tools since the listing that judged the
// run.
func (p *linkPorts) Changed() (string, bool) {
	if p.cached == nil {
		return "", false
	}
	return p.call.Server, p.link.Changed(p.cached.Number)
}

// Call makes the one call, within the server's time. The run's time is paused meanwhile.
func (p *linkPorts) Call(ctx context.Context, c *states.CallTool) states.Event {
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
	p.configured.measureCall(c, nil, begun, result)
	p.failed = result.RPCError
	return p.configured.callEvent(ctx, result)
}

// paramHeaders returns the headers that repeat arguments for a server of the stateless revision, as
// the tool's schema demands.
func (p *linkPorts) paramHeaders(c *states.CallTool) map[string]string {
	if !p.link.Modern() {
		return nil
	}
	for _, t := range p.configured.viewOf(p.cached).sent {
		if t.Name == c.Tool {
			return gateway.ParamHeader(t.Raw, c.Bytes)
		}
	}
	return nil
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

// listingStopped returns the event of a listing that the end of the run's context stopped.
func listingStopped(cause error) states.Event {
	code, reason := interruptionOf(cause, "servers were asked for their tools")
	return &states.EffectFailed{Code: code, Effect: states.NotSent, Reason: reason}
}

// interruptionOf returns the code and the reason of work that the end of the run's context stopped.
func interruptionOf(cause error, work string) (policy.Code, string) {
	if errors.Is(cause, context.DeadlineExceeded) {
		return policy.CodeTimeout, fmt.Sprintf("The run's time ran out while %s.", work)
	}
	return policy.CodeCancelled, fmt.Sprintf("The run was cancelled while %s.", work)
}

// callEvent converts a tool result or error into a machine event.
func (r *ConfiguredRunner) callEvent(ctx context.Context, returned upstream.Returned) states.Event {
	if returned.Code == "" && returned.Result != nil {
		return &states.ToolReturned{Result: r.mask(returned.Result)}
	}
	code, reason := policy.Code(returned.Code), returned.Reason
	if errors.Is(ctx.Err(), context.Canceled) {
		code, reason = policy.CodeCancelled, "The run was cancelled during the call."
	}
	return &states.EffectFailed{Code: code, Effect: states.Effect(returned.Effect), Reason: r.Secrets.String(reason)}
}
