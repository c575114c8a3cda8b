package gateway

import (
	"context"
	"sync"
	"time"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/gateway/session"
)

// maxSessionLinks bounds the links of one session. A session has one for each server.
const maxSessionLinks = 1 << 12

// A clientSession is a session and what the dispatcher knows of its client.
type clientSession struct {
	*session.Session
	capabilities ask.Capabilities
	links        linkTable
	requests     ask.Requests // to the client

	mu              sync.Mutex
	level           string              // of the log, as the client set it; empty: it did not
	connectedBefore map[string]*server  // by name
	watches         map[string][]string // resources that the client subscribes to, by server
	listed          *listedTools        // nil: the client has not asked for the list
}

// openSession opens a session for a client with these capabilities.
func (g *Gateway) openSession(q *request, protocol string, c ask.Capabilities) (*clientSession, error) {
	opened, err := g.table.Open(q.From, q.Endpoint, protocol)
	if err != nil {
		return nil, err
	}
	s := &clientSession{Session: opened, capabilities: c, connectedBefore: make(map[string]*server), watches: make(map[string][]string)}
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
