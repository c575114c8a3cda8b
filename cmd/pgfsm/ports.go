package main

import (
	"context"
	"errors"

	"pgfsm/mcp"
	"pgfsm/policy"
	"pgfsm/states"
)

// door is the run's way to the world.
func (a *app) door(run *states.Run) *states.Live {
	servers := &servers{app: a, run: run, listings: make(map[string]uint64)}
	return &states.Live{Watcher: servers, Tools: servers, Completer: completer{a}, Caller: servers}
}

// servers puts package mcp behind the machine's ports, for one run.
type servers struct {
	*app
	run      *states.Run       // nil where tools are only listed
	listings map[string]uint64 // which listing of each server the run goes by
}

// List asks every server for its tools.
func (u *servers) List(ctx context.Context, _ *states.ListTools) states.Event {
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
		u.listings[l.Server] = l.Number
		to := policy.Listing{
			Code: policy.Code(l.Code), Name: u.secrets.String(l.ServerName), Protocol: u.secrets.String(l.Protocol),
			Reason: u.secrets.String(l.Reason), Server: l.Server, Status: l.Status,
			Version: u.secrets.String(l.ServerVersion),
		}
		for _, page := range l.Pages {
			to.Pages = append(to.Pages, u.mask(page))
		}
		listed.Servers = append(listed.Servers, to)
	}
	return listed
}

// Changed reports whether the server that the run would call has announced other tools since it was listed. What other
// servers announce is nothing to this run.
func (u *servers) Changed() (string, bool) {
	plan := u.run.Plan()
	if plan == nil || u.listings[plan.Server] == 0 {
		return "", false
	}
	return plan.Server, u.upstreams.Changed(plan.Server, u.listings[plan.Server])
}

// Call makes the one call, within the server's time and the run's.
func (u *servers) Call(run context.Context, c *states.CallTool) states.Event {
	ctx := run
	for _, s := range u.app.servers {
		if s.Name == c.Server {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(run, s.Timeout)
			defer cancel()
		}
	}
	got := u.upstreams.Call(ctx, mcp.Call{Server: c.Server, Tool: c.Tool, Arguments: c.Bytes, RunID: c.Run, Listing: u.listings[c.Server]})
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
		Code: code, Effect: states.Effect(got.Effect), Reason: u.secrets.String(reason),
	}
}
