package gateway

import (
	"context"
	"slices"
	"sync"
	"time"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// Bounds of the subscriptions of one session.
const (
	maxSubscribed   = 1000      // resources of one server; also the bound for one subscription of a stateless client
	maxWatchedBytes = 256 << 10 // bytes of their URIs together; one URI may be as long as a message
)

// cancelGrace is the time that cancelled requests get to tell their servers, before the links of an ended session are closed.
const cancelGrace = 2 * time.Second

// A clientSession is a session with the dispatcher's data about its client.
type clientSession struct {
	*session.Session
	capabilities clientCapabilities
	questions    openQuestions
	linksClosed  bool // the session has ended, with its links; guarded by the table of links

	mu      sync.Mutex
	level   severity            // log level that the client set; zero: none
	watches map[string][]string // resources that the client subscribes to, by server

	joining sync.Mutex       // held before every other lock
	joined  map[string]*link // by server: the last link that the client used
}

// openSession opens a session for a client with these capabilities.
func (g *Gateway) openSession(q *request, protocol string, c clientCapabilities) (*clientSession, error) {
	opened, err := g.table.Open(q.From, q.Endpoint, protocol)
	if err != nil {
		return nil, err
	}
	s := &clientSession{
		Session:      opened,
		capabilities: c,
		joined:       make(map[string]*link),
		watches:      make(map[string][]string),
	}

	g.mu.Lock()
	g.sessions[opened] = s
	g.mu.Unlock()
	context.AfterFunc(s.Context, func() {
		g.mu.Lock()
		delete(g.sessions, opened)
		g.mu.Unlock()
		s.leaveAll()
		g.closeLinks(s)
	})
	return s, nil
}

// closeLinks closes the links of an ended session. Before that, its requests under way get cancelGrace to tell their servers.
func (g *Gateway) closeLinks(s *clientSession) {
	timer := time.NewTimer(cancelGrace)
	defer timer.Stop()
	select {
	case <-s.Requests.Empty():
	case <-timer.C:
	}
	g.links.closeSession(s)
}

// notify sends the client a notification without params, if its revision defines it.
func (s *clientSession) notify(method string) {
	if methodOf(fromServer, method).existsIn(s.Protocol) {
		_ = s.Send(wire.Call(nil, nil, method, nil)) // the front notices a client that is gone
	}
}

// receive notifies the client of a changed list of a shared server. It
// passes nothing else: such a server does not say which client it means.
func (s *clientSession) receive(m wire.Message) {
	switch m.Method {
	case noteTools, notePrompts, noteResources:
		s.notify(m.Method)
	}
}

// join makes a link, which other clients may share, notify the session's client of changes. A link without a process stays open as long
// as the session. The session leaves its former link with the server.
func (s *clientSession) join(l *link) {
	s.joining.Lock()
	defer s.joining.Unlock()
	former := s.joined[l.server.Name]
	if former == l || l.Retired() || s.Context.Err() != nil {
		return
	}

	s.joined[l.server.Name] = l
	if l.session == nil {
		l.addSubscriber(s)
	}
	if !l.Process() {
		l.keep()
	}
	if former == nil {
		return
	}
	s.leave(former)
	if former.server != l.server || former.Idle() {
		return
	}
	for _, list := range listNotifications { // notifications may have been missed
		if l.server.Expose.Includes(list.needs) {
			s.notify(list.method)
		}
	}
}

// leave undoes what join did with a link.
func (s *clientSession) leave(l *link) {
	l.removeSubscriber(s)
	if !l.Process() {
		l.unkeep()
	}
}

// leaveAll leaves all links of a session that has ended.
func (s *clientSession) leaveAll() {
	s.joining.Lock()
	defer s.joining.Unlock()
	for _, l := range s.joined { // in any order: each is independent
		s.leave(l)
	}
}

// watched returns the resources of a server to which the client is subscribed.
func (s *clientSession) watched(server string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.watches[server])
}

// setWatch records whether the client is subscribed to a resource. It reports false if there are too many.
func (s *clientSession) setWatch(server, uri string, on bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	others := slices.DeleteFunc(slices.Clone(s.watches[server]), func(u string) bool { return u == uri })
	if !on {
		s.watches[server] = others
		return true
	}

	size := len(uri)
	for name, uris := range s.watches { // in any order: they are counted
		if name == server {
			uris = others
		}
		for _, u := range uris {
			size += len(u)
		}
	}
	if len(others) >= maxSubscribed || size > maxWatchedBytes {
		return false
	}
	s.watches[server] = append(others, uri)
	return true
}
