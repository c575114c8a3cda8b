package states

import "pgfsm/policy"

// screened discovers the live catalog.
type screened struct{}

func (screened) Want(r *Run) Command { return listTools(r) }

func listTools(r *Run) Command {
	servers := make([]string, 0, len(r.bundle.Content().Servers))
	for _, s := range r.bundle.Content().Servers {
		servers = append(servers, s.Name)
	}
	return &ListTools{Do: doListTools, Servers: servers}
}

func (screened) Judge(r *Run, ev Event) Judgement {
	listed, ok := ev.(*ToolsListed)
	if !ok {
		return unexpected(ev, NotSent)
	}
	c := r.bundle.Catalog(listed.Catalog(), listed.Servers)
	if !c.Up() {
		return fail(policy.CodeNoServers, "No server answered: "+whyDown(c), NotSent)
	}
	f := &DiscoveredFact{Catalog: c.Digest(), Servers: Statuses(c), catalog: c}
	effective := c.Effective()
	if len(effective) > 0 {
		f.Effective = make([]ToolRef, 0, len(effective))
	}
	for _, t := range effective {
		f.Effective = append(f.Effective, ToolRef{Definition: t.Digest, Server: t.Server, Tool: t.Name})
	}
	return Judgement{Discover, f}
}

// Statuses says how each server of a catalog answered, in the operator's order.
func Statuses(c *policy.Catalog) []ServerStatus {
	all := make([]ServerStatus, 0, len(c.Servers))
	for _, s := range c.Servers {
		all = append(all, ServerStatus{
			Code: s.Code, Protocol: s.Protocol, Reason: s.Reason, Server: s.Server, Status: s.Status, Tools: len(s.Tools),
		})
	}
	return all
}

func whyDown(c *policy.Catalog) string {
	if len(c.Servers) == 0 {
		return "none is configured."
	}
	why := ""
	for i, s := range c.Servers {
		if i > 0 {
			why += "; "
		}
		why += s.Server + ": " + s.Reason
	}
	return why
}
