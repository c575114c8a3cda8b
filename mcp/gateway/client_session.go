package gateway

import (
	"context"
	"sync"
	"time"

	"pgfsm/mcp/gateway/session"
)

// A clientSession is a session with what the dispatcher knows of it.
type clientSession struct {
	*session.Session
	capabilities clientCapabilities
	links        linkTable

	mu             sync.Mutex
	level          string                    // of the log, as the client set it; empty: it did not
	clientRequests map[string]*clientRequest // requests to the client that wait for its answer, by our id
	number         uint64                    // of the last of them

	connectedBefore map[string]bool     // the servers that were connected to
	watches         map[string][]string // the resources that the client subscribes to, by server
}

// openSession opens a session of a client with these abilities.
func (g *Gateway) openSession(q *request, protocol string, can clientCapabilities) (*clientSession, error) {
	opened, err := g.table.Open(q.From, q.Endpoint, protocol)
	if err != nil {
		return nil, err
	}
	s := &clientSession{
		Session: opened, capabilities: can, clientRequests: make(map[string]*clientRequest), connectedBefore: make(map[string]bool), watches: make(map[string][]string),
	}
	s.links.init(s.Context, maxSessionLinks, 0)
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

// finish lets go of what a session holds that has ended.
func (s *clientSession) closeLinks() {
	timer := time.NewTimer(cancelGrace) // for which what was under way may tell its servers that it is over
	defer timer.Stop()
	select {
	case <-s.Requests.Empty():
	case <-timer.C:
	}
	s.links.close()
}

// maxSessionLinks bounds the links of one session. A session has one for each server.
const maxSessionLinks = 1 << 12
