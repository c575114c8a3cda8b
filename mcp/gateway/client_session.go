package gateway

import (
	"context"
	"sync"
	"time"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// A clientSession is a session and what the dispatcher knows of its client.
type clientSession struct {
	*session.Session
	capabilities ask.Capabilities
	links        linkTable
	requests     ask.Requests // to the client

	mu      sync.Mutex
	level   string              // of the log, as the client set it; empty: it did not
	watches map[string][]string // resources that the client subscribes to, by server
	listed  *listedTools        // nil: the client has not asked for the list

	joining sync.Mutex            // held before every other lock
	joined  map[string]joinedLink // by server: the last link that the client used
}

// openSession opens a session for a client with these capabilities.
func (g *Gateway) openSession(q *request, protocol string, c ask.Capabilities) (*clientSession, error) {
	opened, err := g.table.Open(q.From, q.Endpoint, protocol)
	if err != nil {
		return nil, err
	}
	s := &clientSession{Session: opened, capabilities: c, joined: make(map[string]joinedLink), watches: make(map[string][]string)}
	s.links.init(s.Context)
	g.mu.Lock()
	g.sessions[opened] = s
	g.mu.Unlock()
	context.AfterFunc(s.Context, func() {
		g.mu.Lock()
		delete(g.sessions, opened)
		g.mu.Unlock()
		s.closeLinks()
	})
	return s, nil
}

// A joinedLink is a link that a session's client uses.
type joinedLink struct {
	*link
	leave func() // ends join
}

// join makes a link that the session's client uses, and others may use, notify the client of changes. A link without a process stays open as
// long as the session. The session forgets the former link with the server.
func (s *clientSession) join(l *link) {
	s.joining.Lock()
	defer s.joining.Unlock()
	last, found := s.joined[l.server.Name]
	if last.link == l || l.Retired() {
		return
	}
	s.joined[l.server.Name] = joinedLink{l, s.addTo(l)}
	if !found {
		return
	}
	last.leave()
	if last.server != l.server || last.Idle() {
		return
	}
	for _, method := range []string{noteTools, notePrompts, noteResources} { // notifications may have been missed
		if l.server.Expose.Has(methodOf(fromServer, method).needs) {
			s.notify(method)
		}
	}
}

// addTo makes a link serve the session until leave is called or the session ends.
func (s *clientSession) addTo(l *link) (leave func()) {
	unsubscribe, unkeep := func() {}, func() {}
	if l.session == nil {
		unsubscribe = l.addSubscriber(s)
	}
	if !l.Process() {
		l.slot.table.keep(l.slot)
		unkeep = func() { l.slot.table.unkeep(l.slot) }
	}
	end := sync.OnceFunc(func() { unsubscribe(); unkeep() })
	stop := context.AfterFunc(s.Context, end)
	return func() { stop(); end() }
}

// add notifies the client of a changed list. Nothing says whom else a server of several clients means.
func (s *clientSession) add(m wire.Message) {
	switch m.Method {
	case noteTools, notePrompts, noteResources:
		s.notify(m.Method)
	}
}

// closeLinks closes the links of a session that has ended. The requests under way have some time to tell their servers.
func (s *clientSession) closeLinks() {
	timer := time.NewTimer(ask.CancelGrace)
	defer timer.Stop()
	select {
	case <-s.Requests.Empty():
	case <-timer.C:
	}
	s.links.close()
}
