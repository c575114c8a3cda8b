package states

import "pgfsm/policy"

// screened discovers the live catalog.
type screened struct{}

func (screened) Want(r *Run) Command { return &ListTools{Do: doListTools, Servers: r.bundle.Servers()} }

func (screened) Judge(r *Run, ev Event) Judgement {
	listed, ok := ev.(*ToolsListed)
	if !ok || listed.Bundle != nil {
		return failUnexpected(ev, NotSent)
	}
	c := r.bundle.Catalog(listed.Catalog(), listed.Servers)
	if !c.Up() {
		code := policy.CodeNoServers
		if len(c.Servers) == 1 {
			code = c.Servers[0].DownCode(code)
		}
		return failRun(code, NoServers(c), NotSent)
	}
	// Runs with one catalog share what View made, so each gets a copy of the fact.
	f := *c.View(newDiscoveredFact).(*DiscoveredFact)
	return Judgement{Discover, &f}
}

// newDiscoveredFact is the fact of a catalog. Runs with the same catalog share it.
func newDiscoveredFact(c *policy.Catalog) any {
	f := &DiscoveredFact{Catalog: c.Digest(), Servers: Statuses(c), catalog: c}
	for _, t := range c.Effective() {
		f.Effective = append(f.Effective, ToolRef{Definition: t.Digest, Server: t.Server, Tool: t.Name})
	}
	return f
}

// Statuses returns the status of each server of a catalog, in the operator's order.
func Statuses(c *policy.Catalog) []ServerStatus {
	statuses := make([]ServerStatus, 0, len(c.Servers))
	for _, s := range c.Servers {
		statuses = append(statuses, ServerStatus{
			Code:     s.Code,
			Protocol: s.Protocol,
			Reason:   s.Reason,
			Server:   s.Server,
			Status:   s.Status,
			Tools:    len(s.Tools),
		})
	}
	return statuses
}

// NoServers is the reason of a run whose catalog has no server that answered. It has each server's
// error.
func NoServers(c *policy.Catalog) string { return "No server answered: " + whyDown(c) }

func whyDown(c *policy.Catalog) string {
	if len(c.Servers) == 0 {
		return "none is configured."
	}
	reasons := ""
	for i, s := range c.Servers {
		if i > 0 {
			reasons += "; "
		}
		reasons += s.Server + ": " + s.Reason
	}
	return reasons
}
