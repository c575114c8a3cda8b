package main

import (
	"sync"
	"time"

	"pgfsm/mcp/gateway"
	"pgfsm/mcp/upstream"
	"pgfsm/policy"
	"pgfsm/states"
)

// A view is what a server's kept listing comes to under the configuration's bundle. It is made once for each listing.
type view struct {
	listing policy.Listing
	whole   *states.ToolsListed
	sent    []policy.Sent // none if the listing cannot be read: then its server counts as down
	broken  bool
	tools   []gateway.Tool // that agents may see

	mu     sync.Mutex
	events map[string]*states.ToolsListed // the latest of each listed name
}

func (a *app) view(k *upstream.Kept) *view {
	return k.View(func(l upstream.Listing) any { return a.newView(a.listing(l)) }).(*view)
}

func (a *app) newView(l policy.Listing) *view {
	v := &view{listing: l, whole: states.Shared(&states.ToolsListed{Servers: []policy.Listing{l}}), events: make(map[string]*states.ToolsListed)}
	sent, err := l.Sent()
	if err != nil || l.Status != policy.ServerUp {
		v.broken = true
		return v
	}
	v.sent = sent
	effective := make(map[string]bool)
	for _, t := range a.bundle.Catalog(v.whole.Catalog(), v.whole.Servers).Effective() {
		effective[t.Name] = true
	}
	for _, t := range sent {
		if effective[t.Name] {
			v.tools = append(v.tools, gateway.Tool{Name: t.Name, Raw: t.Raw})
		}
	}
	return v
}

// event is what a run is told of the listing that goes for one tool. A listing that cannot be read is told whole: it says
// why.
func (v *view) event(tool string, age time.Duration) *states.ToolsListed {
	seconds := int((age + time.Second - 1) / time.Second)
	if v.broken {
		return states.KeptOf(v.whole, v.listing, seconds)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.events[tool]; e != nil && e.Kept.Age == seconds {
		return e
	}
	part := v.listing.Pick(v.sent, tool)
	e := states.KeptOf(v.whole, part, seconds)
	if len(part.Pages[0]) > len(`{"tools":[]}`) { // names that nobody lists are not worth remembering, and have no end
		v.events[tool] = e
	}
	return e
}

// listing is a server's answer as runs are told of it: without the operator's secrets.
func (a *app) listing(l upstream.Listing) policy.Listing {
	to := policy.Listing{
		Code: policy.Code(l.Code), Name: a.secrets.String(l.ServerName), Protocol: a.secrets.String(l.Protocol),
		Reason: a.secrets.String(l.Reason), Server: l.Server, Status: l.Status, Version: a.secrets.String(l.ServerVersion),
	}
	for _, page := range l.Pages {
		to.Pages = append(to.Pages, a.mask(page))
	}
	return to
}
