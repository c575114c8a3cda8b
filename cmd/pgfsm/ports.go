package main

import (
	"context"
	"errors"

	"pgfsm/deadline"
	"pgfsm/mcp/upstream"
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
		listed.Servers = append(listed.Servers, u.listing(l))
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

// Call makes the one call, within the server's time. The run's stands still meanwhile.
func (u *servers) Call(run context.Context, c *states.CallTool) states.Event {
	defer deadline.Pause(run)()
	got := u.upstreams.Call(run, upstream.Call{
		Server: c.Server, Tool: c.Tool, Arguments: c.Bytes, Extra: c.Beside, RunID: c.Run, Listing: u.listings[c.Server],
	})
	return u.came(run, got)
}
