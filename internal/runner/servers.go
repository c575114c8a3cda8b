package runner

import (
	"slices"
	"sync"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/policy"
	"pgfsm/states"
)

// serverStates caches the last listing of each server, for people. The zero value has none.
type serverStates struct {
	mu   sync.Mutex
	last map[string]serverState
}

// A serverState is the last listing of a server.
type serverState struct {
	listing policy.Listing
	since   string // start of the current status, up or down, as the service saw it
	at      string // the listing's time
	number  uint64 // the listing's number; of a server that is down: the last listing's
}

// noteListing caches a listing, unless it is older than the cached one: each session with a server
// caches its own listings. The number is 0 if the server is down.
func (s *serverStates) noteListing(l policy.Listing, number uint64, noted string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	former := s.last[l.Server]
	if number != 0 && number < former.number {
		return
	}
	state := serverState{l, noted, noted, max(number, former.number)}
	if former.listing.Status == l.Status {
		state.since = former.since
	}
	if s.last == nil {
		s.last = make(map[string]serverState)
	}
	s.last[l.Server] = state
}

func (s *serverStates) lastSeen(server string) (serverState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, ok := s.last[server]
	return state, ok
}

// lastListing returns the last listing of a server. The tools of a coding agent are known without
// one.
func (r *ConfiguredRunner) lastListing(server string) (serverState, bool) {
	if r.Upstreams != nil {
		if k := r.Upstreams.ClientTools(server); k != nil {
			r.viewOf(k) // notes the listing
		}
	}
	return r.runner.servers.lastSeen(server)
}

// knownCatalog returns the bundle's catalog of the last listings. Servers that were never listed
// are absent.
func (r *ConfiguredRunner) knownCatalog() *policy.Catalog {
	listed := &states.ToolsListed{}
	for _, s := range r.Bundle.Content().Servers {
		if state, ok := r.lastListing(s.Name); ok {
			listed.Servers = append(listed.Servers, state.listing)
		}
	}
	return r.Bundle.Catalog(listed.Catalog(), listed.Servers)
}

// definitionDigest returns the digest of a tool's definition in the last listing of its server;
// empty if the listing lacks the tool. If there was no listing, or the server was down, known is
// false.
func (r *ConfiguredRunner) definitionDigest(server, tool string) (d canonical.Digest, known bool) {
	state, ok := r.lastListing(server)
	if !ok || state.listing.Status != policy.ServerUp {
		return "", false
	}
	sent, err := state.listing.Sent()
	if err != nil {
		return "", false
	}
	listed := &states.ToolsListed{Servers: []policy.Listing{state.listing.Pick(sent, tool)}}
	for _, s := range r.Bundle.Catalog(listed.Catalog(), listed.Servers).Servers {
		for _, t := range s.Tools {
			d = t.Digest
		}
	}
	return d, true
}

// Servers returns the configured servers with the data of their last listings. It asks no server.
func (r *ConfiguredRunner) Servers(pins *present.Pins) (servers []present.Server) {
	c := r.knownCatalog()
	for _, configured := range r.Bundle.Content().Servers {
		s := present.Server{Server: configured.Name, Status: present.ServerUnknown, Tools: []present.ServerTool{}}
		i := slices.IndexFunc(c.Servers,
			func(listed policy.CatalogServer) bool { return listed.Server == configured.Name })
		if i >= 0 {
			listed := &c.Servers[i]
			s.Status, s.Code, s.Reason, s.Name = listed.Status, listed.Code, listed.Reason, listed.Name
			s.Version, s.Protocol, s.Tools = listed.Version, listed.Protocol,
				present.ServerTools(r.Bundle.Content(), c, listed.Server, pins)
			if r.Upstreams != nil && r.Upstreams.ClientTools(configured.Name) != nil {
				s.Protocol = "" // there is no connection: the client asks by hook
			}
			state, _ := r.lastListing(configured.Name)
			s.Since, s.Asked = state.since, state.at
		}
		servers = append(servers, s)
	}
	return servers
}
