package gateway

import (
	"fmt"
	"sync/atomic"

	"pgfsm/mcp/gateway/front"
	"pgfsm/mcp/upstream"
)

// A generation is a [Config] as requests use it. It is immutable. A request uses one generation to its end.
type generation struct {
	*Config
	endpoints map[string]*endpoint // by server; all servers under the empty name
	replaced  chan struct{}        // closed when another generation has taken its place
}

// A server is a [Server] with its connection settings. Generations share it if neither changed.
type server struct {
	Server
	upstreams *upstream.Upstreams
	retired   atomic.Bool // the active generation has another server in its place, or none
}

// An endpoint is where clients connect: one server, or all servers under joined names.
type endpoint struct {
	server  *server // nil: all
	servers []*server
}

// newGeneration returns the generation of a configuration, which shares with the former one the servers that did not change.
func newGeneration(c *Config, former *generation) (*generation, error) {
	all := &endpoint{}
	n := &generation{Config: c, endpoints: map[string]*endpoint{"": all}, replaced: make(chan struct{})}
	for i := range c.Servers {
		s := &server{Server: c.Servers[i], upstreams: c.Upstreams}
		if !s.separate() {
			s.Expose &^= ExposeSampling | ExposeElicitation | ExposeRoots
		}
		if n.endpoints[s.Name] != nil {
			return nil, fmt.Errorf("the server %q has no name or another's", s.Name)
		}
		if same := former.sharedServer(s); same != nil {
			s = same
		}
		n.endpoints[s.Name] = &endpoint{server: s, servers: []*server{s}}
		all.servers = append(all.servers, s)
	}
	return n, nil
}

// sharedServer returns the generation's server if s is the same; nil if it has none, or another.
func (n *generation) sharedServer(s *server) *server {
	if n == nil || n.endpoints[s.Name] == nil {
		return nil
	}
	has := n.endpoints[s.Name].server
	if has.Server != s.Server || !has.upstreams.Shares(s.upstreams, s.Name) {
		return nil
	}
	return has
}

// has reports whether the generation has the server.
func (n *generation) has(s *server) bool {
	at := n.endpoints[s.Name]
	return at != nil && at.server == s
}

// front are the settings of the front.
func (n *generation) front() front.Settings {
	s := front.Settings{Hosts: n.Hosts, Clients: n.Clients, Required: n.Required, Metadata: n.Metadata}
	for _, server := range n.Servers {
		s.Servers = append(s.Servers, server.Name)
	}
	return s
}
