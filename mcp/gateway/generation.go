package gateway

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"pgfsm/mcp/gateway/front"
	"pgfsm/mcp/upstream"
)

// A generation is an immutable [Config], indexed for requests. A request uses one generation to its
// end.
type generation struct {
	*Config
	endpoints map[string]*endpoint // by server; all servers under the empty name
	replaced  chan struct{}        // closed when another generation replaces this one
}

// A server is a [Server] with its connection settings. Generations share it if both are unchanged.
type server struct {
	Server
	upstreams *upstream.Upstreams
	retired   atomic.Bool // the active generation has another server in its place, or none

	mu    sync.Mutex
	state serverState
}

// A serverState holds the gateway's knowledge of a server since it last tried to connect.
type serverState struct {
	known     bool // offers and stateless were set by the last link
	offers    offers
	stateless bool
	down      bool // the server could not be reached
	unlisted  bool // the server's last list of tools failed
	// Number of the last listing of which some tools were logged as missing in the list of all
	// servers.
	leftOut uint64
}

func (s *server) currentState() serverState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// changeState changes the state, and returns the previous one.
func (s *server) changeState(change func(*serverState)) (before serverState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before = s.state
	change(&s.state)
	return before
}

// separatesSessions reports whether each client's session has its own sessions with the server.
// Only then may the server send requests to clients, and notify them of resources: on a shared link
// a message does not say which client it is for.
func (s *server) separatesSessions() bool { return s.Sessions == upstream.SessionsSession }

// An endpoint is a path at which clients connect: to one server, or to all servers under joined
// names.
type endpoint struct {
	server  *server // nil for the endpoint of all servers
	servers []*server
}

// serversExposing returns the servers of the endpoint that expose all of needs, in the operator's
// order.
func (e *endpoint) serversExposing(needs Expose) (servers []*server) {
	if e == nil {
		return nil
	}
	for _, s := range e.servers {
		if s.Expose.Includes(needs) {
			servers = append(servers, s)
		}
	}
	return servers
}

// newGeneration returns the generation of a configuration. It shares the unchanged servers with the
// former generation.
func newGeneration(c *Config, former *generation) (*generation, error) {
	allServers := &endpoint{}
	n := &generation{Config: c, endpoints: map[string]*endpoint{"": allServers}, replaced: make(chan struct{})}
	for i := range c.Servers {
		s := &server{Server: c.Servers[i], upstreams: c.Upstreams}
		if !s.separatesSessions() {
			s.Expose &^= ExposeSampling | ExposeElicitation | ExposeRoots
		}
		if n.endpoints[s.Name] != nil {
			return nil, fmt.Errorf("the server %q has no name or another's", s.Name)
		}
		if unchanged := former.sharedServer(s); unchanged != nil {
			s = unchanged
		}
		n.endpoints[s.Name] = &endpoint{server: s, servers: []*server{s}}
		allServers.servers = append(allServers.servers, s)
	}
	return n, nil
}

// sharedServer returns the generation's server if it is the same as s; nil if the generation has
// none of this name, or another.
func (n *generation) sharedServer(s *server) *server {
	if n == nil || n.endpoints[s.Name] == nil {
		return nil
	}
	former := n.endpoints[s.Name].server
	if former.Server != s.Server || !former.upstreams.Shares(s.upstreams, s.Name) {
		return nil
	}
	return former
}

// frontSettings returns the settings of the front.
func (n *generation) frontSettings() front.Settings {
	s := n.Front
	for _, server := range n.Servers {
		s.Servers = append(s.Servers, server.Name)
	}
	return s
}

// A Replacement is a configuration that [Gateway.Replace] can make the active one.
type Replacement struct{ next *generation }

// Prepare checks a configuration and returns its Replacement. It changes nothing.
func (g *Gateway) Prepare(c Config) (r Replacement, err error) {
	r.next, err = newGeneration(&c, g.active.Load())
	return r, err
}

// Replace makes requests use another configuration from now on. Requests under way keep theirs;
// idle is closed when all of those have ended. The sessions of clients stay, and so do the links
// with unchanged servers. The links with the others are closed when their requests have ended.
// Clients are notified that their lists may have changed. No other call of Replace may come between
// Prepare and Replace.
func (g *Gateway) Replace(r Replacement) (idle <-chan struct{}) {
	former, next := g.active.Load(), r.next
	_, idle = g.active.Replace(next)
	g.front.Replace(next.frontSettings())

	// Links with servers that were changed or removed close as soon as no request uses them.
	for _, s := range former.endpoints[""].servers {
		if e := next.endpoints[s.Name]; e == nil || e.server != s {
			s.retired.Store(true)
			g.links.retireServer(s)
		}
	}

	close(former.replaced) // subscriptions follow the servers of the next generation
	for _, s := range g.openSessions() {
		e := next.endpoints[s.Endpoint]
		if e == nil {
			s.End()
			continue
		}
		for _, list := range listNotifications {
			if len(e.serversExposing(list.needs)) > 0 ||
				len(former.endpoints[s.Endpoint].serversExposing(list.needs)) > 0 {
				s.sendNotification(list.method)
			}
		}
	}

	return idle
}

func (g *Gateway) openSessions() []*clientSession {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Values(g.sessions)) // in any order: each is independent
}

// listNotifications tell a client that a list may have changed.
var listNotifications = []struct {
	method string
	needs  Expose // exposed by a server with such a list
	offers offers // offers of a server that announces changes; zero: the gateway announces them
	member string // member in the filter of subscriptions/listen
}{
	{noteTools, ExposeTools, 0, "toolsListChanged"},
	{notePrompts, ExposePrompts, offersPromptChanges, "promptsListChanged"},
	{noteResources, ExposeResources, offersResourceChanges, "resourcesListChanged"},
}
