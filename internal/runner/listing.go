package runner

import (
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
	"pgfsm/states"
)

// A view is a server's cached listing as the bundle judges it. Each listing has one view.
type view struct {
	listing  policy.Listing
	whole    *states.ToolsListed
	sent     []policy.Sent // empty if the listing is unreadable: then its server counts as down
	unusable bool
	tools    []viewTool // tools that at least one agent may see

	mu     sync.Mutex
	events map[string]*states.ToolsListed // key: the tool; value: its latest event
}

// A viewTool is a tool as the server sent it, and as the bundle judges it.
type viewTool struct {
	sent   gateway.Tool
	judged *policy.Tool
}

// Tools returns the tools of a listing that a client may see.
func (r *ConfiguredRunner) Tools(k *upstream.CachedListing, identity *policy.Identity) []gateway.Tool {
	tools := r.viewOf(k).tools
	listed := make([]gateway.Tool, 0, len(tools))
	for _, t := range tools {
		if r.Bundle.ListedFor(t.judged, identity) {
			listed = append(listed, t.sent)
		}
	}
	return listed
}

func (r *ConfiguredRunner) viewOf(k *upstream.CachedListing) *view {
	return k.View(r, func(l upstream.Listing) any { return r.newView(r.maskListing(l)) }).(*view)
}

func (r *ConfiguredRunner) newView(l policy.Listing) *view {
	v := &view{listing: l, whole: states.Shared(&states.ToolsListed{Servers: []policy.Listing{l}}),
		events: make(map[string]*states.ToolsListed)}
	sent, err := l.Sent()
	if err != nil || l.Status != policy.ServerUp {
		v.unusable = true
		return v
	}
	v.sent = sent
	effective := make(map[string]*policy.Tool)
	for _, t := range r.Bundle.Catalog(v.whole.Catalog(), v.whole.Servers).Effective() {
		effective[t.Name] = t
	}
	for _, t := range sent {
		if effectiveTool := effective[t.Name]; effectiveTool != nil {
			v.tools = append(v.tools, viewTool{gateway.Tool{Name: t.Name, Raw: withOwnSchema(effectiveTool, t.Raw),
				SDKFaults: effectiveTool.SDKFaults()}, effectiveTool})
		}
	}
	return v
}

// withOwnSchema returns a tool as agents see it: the server's definition, with the operator's
// schema if there is one.
func withOwnSchema(judged *policy.Tool, raw jsontext.Value) jsontext.Value {
	if judged.OwnSchema == "" {
		return raw
	}
	edited, err := wire.Set(raw, "inputSchema", judged.InputSchema)
	if err != nil {
		return raw // unreachable: the catalog has read the tool
	}
	return edited
}

// listingEvent returns the part of the listing that judges a run of one tool. It returns an
// unusable listing as a whole, because that says why.
func (v *view) listingEvent(tool string, age time.Duration) *states.ToolsListed {
	seconds := int((age + time.Second - 1) / time.Second)
	if v.unusable {
		return states.CachedPart(v.whole, v.listing, seconds)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.events[tool]; e != nil && e.Cached.Age == seconds {
		return e
	}
	part := v.listing.Pick(v.sent, tool)
	e := states.CachedPart(v.whole, part, seconds)
	// Cache listed tools only: clients can invent any number of names.
	if len(part.Pages[0]) > len(`{"tools":[]}`) {
		v.events[tool] = e
	}
	return e
}

// maskListing returns a server's answer with the operator's secrets masked, and caches it for
// people.
func (r *ConfiguredRunner) maskListing(l upstream.Listing) policy.Listing {
	secrets := r.Secrets
	masked := policy.Listing{
		Code:     policy.Code(l.Code),
		Name:     secrets.String(l.ServerName),
		Protocol: secrets.String(l.Protocol),
		Reason:   secrets.String(l.Reason),
		Server:   l.Server,
		Status:   l.Status,
		Version:  secrets.String(l.ServerVersion),
	}
	for _, page := range l.Pages {
		masked.Pages = append(masked.Pages, r.mask(page))
	}
	r.runner.servers.noteListing(masked, l.Number, r.runner.timestamp())
	return masked
}

// minDropAge is the age from which a refused call drops the listing that it was judged by. Thus
// refused calls cause few listings.
const minDropAge = time.Second

// dropListing drops cached listings of a server after a call was refused because the tool's
// definition changed. It drops the listing that judged the call, unless that is new, and older
// listings of other sessions.
func (r *ConfiguredRunner) dropListing(server string, o states.Outcome, k *upstream.CachedListing) {
	switch {
	case k == nil || o.Code != policy.CodeToolDefinitionChanged:
	case k.Age(time.Now()) < minDropAge:
		r.Upstreams.Forget(server, k.Number-1)
	default:
		r.Upstreams.Forget(server, k.Number)
	}
}

// dropHeld drops the server's cached listings after a gate blocked a held call at its second
// judgment. With the old listings, the next call could be held in vain.
func (r *ConfiguredRunner) dropHeld(run *states.Run, o states.Outcome) {
	if plan := run.Plan(); plan != nil && o.Type == states.TypeBlocked && o.Gate != policy.GateApproval {
		r.Upstreams.Forget(plan.Server, 0)
	}
}

// catalogMaxAge returns the maximum age of a listing that judges a call.
func (r *ConfiguredRunner) catalogMaxAge() time.Duration {
	return time.Duration(r.Serve.CatalogMaxAge) * time.Millisecond
}
