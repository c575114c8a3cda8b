package main

import (
	"context"
	"errors"
	"time"

	"pgfsm/deadline"
	"pgfsm/mcp/gateway"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
	"pgfsm/states"
)

// linkPorts are the ports of an agent's run: its tools and its caller are one session with one server.
type linkPorts struct {
	*app
	ask    *gateway.Ask
	link   *upstream.Link
	kept   *upstream.Kept
	failed *upstream.RPCError // the server's own error, if that was its answer to the call
}

// List takes the listing that the session keeps, or has it made anew if it is too old.
func (p *linkPorts) List(ctx context.Context, _ *states.ListTools) states.Event {
	link, err := p.ask.Link(ctx)
	if err == nil {
		p.link = link
		p.kept, err = link.Listing(ctx, p.maxAge())
	}
	if err == nil {
		return p.view(p.kept).event(p.ask.Tool, p.kept.Age(time.Now()))
	}
	if ctx.Err() != nil { // a server that had no time is not one that is down
		code, reason := policy.CodeCancelled, "The run was cancelled while the server was asked for its tools."
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			code, reason = policy.CodeTimeout, "The run's time ran out while the server was asked for its tools."
		}
		return &states.EffectFailed{Code: code, Effect: states.NotSent, Reason: reason}
	}
	down := upstream.Listing{Server: p.ask.Server, Status: upstream.StatusDown, Code: upstream.CodeUnreachable, Reason: err.Error()}
	var why *upstream.LinkError
	if errors.As(err, &why) {
		down.Code, down.Reason = why.Code, why.Reason
	}
	return p.newView(p.listing(down)).event(p.ask.Tool, 0)
}

// Changed reports whether the server has announced other tools since the listing that the run goes by.
func (p *linkPorts) Changed() (string, bool) {
	if p.kept == nil {
		return "", false
	}
	return p.ask.Server, p.link.Changed(p.kept.Number)
}

// Call makes the one call, within the server's time. The run's stands still meanwhile.
func (p *linkPorts) Call(run context.Context, c *states.CallTool) states.Event {
	defer deadline.Pause(run)()
	got := p.link.Call(run, upstream.Call{
		Server: c.Server, Tool: c.Tool, Arguments: c.Bytes, Extra: c.Beside, Meta: p.ask.Meta, Header: p.ask.Header, RunID: c.Run,
		Listing: p.kept.Number,
	}, p.relay)
	p.failed = got.RPCError
	return p.came(run, got)
}

// relay passes on what the server says during the call, without the operator's secrets.
func (p *linkPorts) relay(m wire.Message) {
	if p.ask.Relay != nil {
		p.ask.Relay(m)
	}
}

// came is the event of what a call came to.
func (a *app) came(run context.Context, got upstream.Returned) states.Event {
	if got.Code == "" && got.Result != nil {
		return &states.ToolReturned{Result: a.mask(got.Result)}
	}
	code, reason := policy.Code(got.Code), got.Reason
	if errors.Is(run.Err(), context.Canceled) {
		code, reason = policy.CodeCancelled, "The run was cancelled during the call."
	}
	return &states.EffectFailed{Code: code, Effect: states.Effect(got.Effect), Reason: a.secrets.String(reason)}
}
