package main

import (
	"context"
	"errors"

	"pgfsm/mcp"
	"pgfsm/policy"
	"pgfsm/states"
)

// door is the app's way to the world.
func (a *app) door() states.Door {
	return &states.Live{Watcher: upstreams{a}, Tools: upstreams{a}, Completer: completer{a}, Caller: upstreams{a}}
}

// upstreams puts package mcp behind the machine's ports.
type upstreams struct{ *app }

// List asks every server for its tools.
func (u upstreams) List(ctx context.Context, _ *states.ListTools) states.Event {
	if err := u.start(ctx); err != nil {
		return &states.EffectFailed{Code: policy.CodeEffectFailed, Effect: states.NotSent, Reason: err.Error()}
	}
	listed := &states.ToolsListed{}
	all := u.upstreams.List(ctx)
	if err := ctx.Err(); err != nil { // servers that had no time are not servers that are down
		code, reason := policy.CodeCancelled, "The run was cancelled while the servers were asked for their tools."
		if errors.Is(err, context.DeadlineExceeded) {
			code, reason = policy.CodeTimeout, "The run's time ran out while the servers were asked for their tools."
		}
		return &states.EffectFailed{Code: code, Effect: states.NotSent, Reason: reason}
	}
	for _, l := range all {
		to := policy.Listing{
			Code: policy.Code(l.Code), Name: string(u.mask([]byte(l.ServerName))), Protocol: string(u.mask([]byte(l.Protocol))),
			Reason: string(u.mask([]byte(l.Reason))), Server: l.Server, Status: l.Status,
			Version: string(u.mask([]byte(l.ServerVersion))),
		}
		for _, page := range l.Pages {
			to.Pages = append(to.Pages, u.mask(page))
		}
		listed.Servers = append(listed.Servers, to)
	}
	return listed
}

// Changed names the first server that has announced other tools since it was listed.
func (u upstreams) Changed() (string, bool) {
	if u.upstreams == nil {
		return "", false
	}
	return u.upstreams.Changed()
}

// Call makes the one call, within the server's time and the run's.
func (u upstreams) Call(run context.Context, c *states.CallTool) states.Event {
	ctx := run
	for _, s := range u.servers {
		if s.Name == c.Server {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(run, s.Timeout)
			defer cancel()
		}
	}
	got := u.upstreams.Call(ctx, mcp.Call{Server: c.Server, Tool: c.Tool, Arguments: c.Bytes, RunID: c.Run})
	if got.Code == "" && got.Result != nil {
		return &states.ToolReturned{Result: u.mask(got.Result)}
	}
	code, reason := policy.Code(got.Code), got.Reason
	switch {
	case errors.Is(run.Err(), context.DeadlineExceeded):
		code, reason = policy.CodeTimeout, "The run's time ran out during the call."
	case run.Err() != nil:
		code, reason = policy.CodeCancelled, "The run was cancelled during the call."
	}
	return &states.EffectFailed{
		Code: code, Effect: states.Effect(got.Effect), Reason: string(u.mask([]byte(reason))),
	}
}
