package runner

import (
	"sync"
	"time"

	"pgfsm/mcp/gateway"
	"pgfsm/mcp/upstream"
	"pgfsm/policy"
	"pgfsm/states"
)

// A view is a server's cached listing as the bundle judges it. It is made once for each listing.
type view struct {
	listing  policy.Listing
	whole    *states.ToolsListed
	sent     []policy.Sent // empty if the listing cannot be read: then its server counts as down
	unusable bool
	tools    []gateway.Tool // that agents may see

	mu     sync.Mutex
	events map[string]*states.ToolsListed // by tool: the latest event
}

// Tools are the tools of a listing that agents may see.
func (r *Runner) Tools(k *upstream.Kept, _ *policy.Identity) []gateway.Tool { return r.view(k).tools }

func (r *Runner) view(k *upstream.Kept) *view {
	return k.View(func(l upstream.Listing) any { return r.newView(r.listing(l)) }).(*view)
}

func (r *Runner) newView(l policy.Listing) *view {
	v := &view{listing: l, whole: states.Shared(&states.ToolsListed{Servers: []policy.Listing{l}}), events: make(map[string]*states.ToolsListed)}
	sent, err := l.Sent()
	if err != nil || l.Status != policy.ServerUp {
		v.unusable = true
		return v
	}
	v.sent = sent
	effective := make(map[string]bool)
	for _, t := range r.options.Bundle.Catalog(v.whole.Catalog(), v.whole.Servers).Effective() {
		effective[t.Name] = true
	}
	for _, t := range sent {
		if effective[t.Name] {
			v.tools = append(v.tools, gateway.Tool{Name: t.Name, Raw: t.Raw})
		}
	}
	return v
}

// event is the part of the listing that a run of one tool is judged by. An unusable listing is passed whole, because it says why.
func (v *view) event(tool string, age time.Duration) *states.ToolsListed {
	seconds := int((age + time.Second - 1) / time.Second)
	if v.unusable {
		return states.KeptOf(v.whole, v.listing, seconds)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.events[tool]; e != nil && e.Kept.Age == seconds {
		return e
	}
	part := v.listing.Pick(v.sent, tool)
	e := states.KeptOf(v.whole, part, seconds)
	if len(part.Pages[0]) > len(`{"tools":[]}`) { // clients can make up any number of names that are not listed
		v.events[tool] = e
	}
	return e
}

// listing is a server's answer with the operator's secrets masked. It is cached for people.
func (r *Runner) listing(l upstream.Listing) policy.Listing {
	secrets := r.options.Secrets
	to := policy.Listing{
		Code: policy.Code(l.Code), Name: secrets.String(l.ServerName), Protocol: secrets.String(l.Protocol),
		Reason: secrets.String(l.Reason), Server: l.Server, Status: l.Status, Version: secrets.String(l.ServerVersion),
	}
	for _, page := range l.Pages {
		to.Pages = append(to.Pages, r.mask(page))
	}
	r.servers.note(to, r.now())
	return to
}

// catalogMaxAge is how old a listing may be that a call is judged by.
func (r *Runner) catalogMaxAge() time.Duration {
	return time.Duration(r.options.Serve.CatalogMaxAge) * time.Millisecond
}
