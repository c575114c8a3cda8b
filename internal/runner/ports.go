package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pgfsm/internal/deadline"
	"pgfsm/mcp/gateway"
	"pgfsm/mcp/upstream"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// runPorts returns the handler of a run that may call any server, in sessions of the requester's
// identity. A person without an account uses no credentials of machines. Call end when the run has ended.
func (r *ConfiguredRunner) runPorts(run *states.Run, person bool) (handler *states.Live, end func()) {
	servers := r.serverPorts(run, requesterOf(run.Request()).Owner())
	servers.client.Person = person
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
// server. A run whose call pgfsm makes does not see the tools of coding agents.
func (p *serverPorts) List(ctx context.Context, _ *states.ListTools) states.Event {
	listed := &states.ToolsListed{}
	servers := p.callServer()
	switch {
	case p.run == nil:
	case states.Delegates(p.run.Request().Kind):
		if len(servers) == 0 { // the call names no server, or an unknown one
			return listed
		}
		if tools := p.configured.Upstreams.ClientTools(servers[0]); tools != nil {
			return p.configured.viewOf(tools).listingEvent(p.plannedCall().Tool, 0)
		}
	default:
		for _, name := range servers {
			if p.configured.Upstreams.ClientTools(name) != nil {
				return clientToolRefused(name)
			}
		}
		if len(servers) == 0 {
			if servers = p.configured.mcpServers(); len(servers) == 0 {
				return listed
			}
		}
	}

	if stopped := p.useAccount(ctx); stopped != nil {
		return stopped
	}
	listings := p.client.List(ctx, servers...)
	if err := ctx.Err(); err != nil { // a server that had no time is not down
		return listingStopped(err)
	}
	for _, l := range listings {
		p.listings[l.Server] = l.Number
		listed.Servers = append(listed.Servers, p.configured.maskListing(l))
	}
	return listed
}

// useAccount makes the run use the account that its call was requested with. If the account has ended, it returns the
// event that ends the run.
func (p *serverPorts) useAccount(ctx context.Context) states.Event {
	if p.run == nil || p.run.Request().Account == nil {
		return nil
	}
	server := p.run.Plan().Server
	a, err := p.configured.heldAccount(ctx, p.run.Request(), server)
	switch {
	case errors.Is(err, ledger.ErrUnconnected):
		return states.Interruption(policy.CodeCredentialsChanged, "The connection with which the call was requested cannot be used any more.")
	case err != nil:
		return &states.EffectFailed{Code: policy.CodeEffectFailed, Effect: states.NotSent, Reason: "The connection cannot be read: " + err.Error()}
	}
	p.client.UseAccount(server, a)
	return nil
}

// mcpServers returns the names of the servers that pgfsm connects to.
func (r *ConfiguredRunner) mcpServers() (names []string) {
	for _, s := range r.Bundle.Content().Servers {
		if r.Upstreams.ClientTools(s.Name) == nil {
			names = append(names, s.Name)
		}
	}
	return names
}

// clientToolRefused returns the event of a run that would call a tool of a coding agent.
func clientToolRefused(server string) states.Event {
	return &states.EffectFailed{
		Code:   upstream.CodeClientTool,
		Effect: states.NotSent,
		Reason: fmt.Sprintf("The tools of %q belong to a coding agent, which executes them itself; pgfsm never calls them.",
			server),
	}
}

// callServer returns the server that the run would call; none if unknown.
func (p *serverPorts) callServer() []string {
	if p.run == nil {
		return p.only
	}
	plan := p.plannedCall()
	if plan == nil || !slices.Contains(p.configured.Bundle.Servers(), plan.Server) {
		return nil // the run is blocked later
	}
	return []string{plan.Server}
}

// plannedCall returns the call of the run, from its plan or, unless the request is a question, from its request;
// nil if unknown.
func (p *serverPorts) plannedCall() *policy.Plan {
	if plan := p.run.Plan(); plan != nil {
		return plan
	}
	request := p.run.Request()
	if request.Kind == states.KindAsk {
		return nil
	}
	plan, _ := policy.ReadCall(request.Text, p.configured.Bundle.Limits())
	return plan
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
	hits := p.configured.cleanResult(c, &result)
	p.configured.measureCall(c, p.run.Request().Trace, begun, result)
	return p.configured.callEvent(ctx, result, hits)
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
