// Package world has the prepared world in which evaluations run the machine: the servers' lists of
// tools, the planner's output, a tool's result and the approvers. No server, no model and no person
// is asked. The calls that reach a server are recorded.
package world

import (
	"context"
	"slices"

	"pgfsm/eval"
	"pgfsm/internal/canonical"
	"pgfsm/internal/runner"
	"pgfsm/policy"
	"pgfsm/policy/origin"
	"pgfsm/states"
)

// A World is the world of one run. It implements the ports of [states.Live].
type World struct {
	// One for each time that the machine lists the tools; the last one is repeated.
	Listings []*states.ToolsListed
	Plan     []byte   // the planner's output
	Result   []byte   // the result of every call
	Approver Approver // nil: a held call stays held
	// As soon as there is a plan, its server announces that its tools have changed.
	Changes bool
	Before  []eval.Target   // the calls that were made for the same task, oldest first
	Session *origin.Session // the prompts and results before the call; nil: they are not known
	Active  *policy.Bundle  // the operator's bundle at the time of the call

	Calls  []eval.Target // the calls that reached a server
	Listed int           // how often the tools were listed
	Held   bool          // an approver was asked

	run *states.Run
}

// An Approver decides about a held call.
type Approver func(run *states.Run, binding canonical.Digest) *states.Decided

// Run takes a run through the machine.
func (w *World) Run(ctx context.Context, machine *runner.Runner, run *states.Run) (states.Outcome, error) {
	w.run = run
	handler := &states.Live{
		Watcher:   w,
		Tools:     w,
		Completer: w,
		Caller:    w,
		Approver:  w,
		History:   w,
		Active:    w.Active,
	}
	result, err := machine.Advance(ctx, run, handler, nil)
	return result.Outcome, err
}

// List answers with the next listing.
func (w *World) List(context.Context, *states.ListTools) states.Event {
	w.Listed++
	return w.Listings[min(w.Listed, len(w.Listings))-1]
}

// Complete answers with the plan, and has no summary.
func (w *World) Complete(_ context.Context, request *states.Complete) states.Event {
	if request.Purpose != states.PurposePlan {
		return nil
	}
	return &states.Completed{Content: w.Plan}
}

// Call records what reached the server.
func (w *World) Call(_ context.Context, c *states.CallTool) states.Event {
	w.Calls = append(w.Calls, eval.Target{Server: c.Server, Tool: c.Tool, Args: slices.Clone(c.Bytes.Bytes())})
	return &states.ToolReturned{Result: w.Result}
}

// Await asks the approver.
func (w *World) Await(_ context.Context, request *states.AwaitDecision) (states.Event, error) {
	if w.Approver == nil {
		return nil, states.ErrParked
	}
	w.Held = true
	return w.Approver(w.run, request.Binding), nil
}

// Changed reports a change of the tools as soon as there is a plan.
func (w *World) Changed() (string, bool) {
	plan := w.run.Plan()
	if !w.Changes || plan == nil {
		return "", false
	}
	return plan.Server, true
}

// Listing is a server's answer to tools/list, of one page.
func Listing(server string, page []byte) policy.Listing {
	return policy.Listing{
		Server: server,
		Status: policy.ServerUp,
		Name:   server,
		Pages:  []canonical.Text{page},
	}
}

// DownListing stands for the answer of a server that gives none.
func DownListing(server, reason string) policy.Listing {
	return policy.Listing{
		Server: server,
		Status: policy.ServerDown,
		Code:   "server_unreachable",
		Reason: reason,
		Pages:  []canonical.Text{},
	}
}
