package gateway

import (
	"context"
	"slices"
	"sync"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// Bounds of the resources to which the client of a session subscribes.
const (
	maxWatchedBytes = 256 << 10 // one URI may be as long as a message
	watchOverhead   = 64        // bytes that a resource takes beside its URI
)

// A clientSession is a session with the dispatcher's data about its client.
type clientSession struct {
	*session.Session
	capabilities clientCapabilities
	questions    openQuestions
	linksClosed  bool // the session has ended, with its links; guarded by the table of links

	mu      sync.Mutex
	level   severity // log level that the client set; zero: none
	watches []watch  // resources that the client subscribes to

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
	}

	g.mu.Lock()
	g.sessions[opened] = s
	g.mu.Unlock()
	context.AfterFunc(s.Context, func() {
		g.mu.Lock()
		delete(g.sessions, opened)
		g.mu.Unlock()
		s.leaveAllLinks()
		g.links.closeSession(s)
	})
	return s, nil
}

// sendNotification sends the client a notification without params, if its revision defines it.
func (s *clientSession) sendNotification(method string) {
	if methodOf(fromServer, method).existsIn(s.Protocol) {
		_ = s.Send(wire.Call(nil, nil, method, nil)) // the front notices a client that is gone
	}
}

// receive notifies the client of a changed list of a shared server. It
// passes nothing else: such a server does not say which client it means.
func (s *clientSession) receive(m wire.Message) {
	switch m.Method {
	case noteTools, notePrompts, noteResources:
		s.sendNotification(m.Method)
	}
}

// joinLink makes a link, which other clients may share, notify the session's client of changes. A
// link without a process stays open as long as the session. The session leaves its former link with
// the server.
func (s *clientSession) joinLink(l *link) {
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
		l.keepOpen()
	}

	if former == nil {
		return
	}
	s.leaveLink(former)
	if former.server != l.server || former.Idle() {
		return
	}

	for _, list := range listNotifications { // notifications may have been missed
		if l.server.Expose.Includes(list.needs) {
			s.sendNotification(list.method)
		}
	}
}

// leaveLink undoes what joinLink did with a link.
func (s *clientSession) leaveLink(l *link) {
	l.removeSubscriber(s)
	if !l.Process() {
		l.stopKeepingOpen()
	}
}

// leaveAllLinks leaves all links of a session that has ended.
func (s *clientSession) leaveAllLinks() {
	s.joining.Lock()
	defer s.joining.Unlock()
	for _, l := range s.joined { // in any order: each is independent
		s.leaveLink(l)
	}
}

// A watch is a resource that a client subscribes to.
type watch struct{ server, uri string }

// watchedResources returns the resources of a server to which the client is subscribed.
func (s *clientSession) watchedResources(server string) (uris []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		if w.server == server {
			uris = append(uris, w.uri)
		}
	}
	return uris
}

// setWatch records whether the client is subscribed to a resource. It reports false if there are
// too many.
func (s *clientSession) setWatch(server, uri string, on bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches = slices.DeleteFunc(s.watches, func(w watch) bool { return w == watch{server, uri} })
	if !on {
		return true
	}

	size := len(uri) + watchOverhead
	for _, w := range s.watches {
		size += len(w.uri) + watchOverhead
	}
	if size > maxWatchedBytes {
		return false
	}
	s.watches = append(s.watches, watch{server, uri})
	return true
}
