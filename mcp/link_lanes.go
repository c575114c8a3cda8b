package mcp

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// lanes are the connections to one server that is spoken to in clear text.
type lanes struct {
	road    *road
	addr    string
	waiting time.Duration // how long a connection may wait for the next exchange

	mu      sync.Mutex
	idle    []*lane     // waiting for the next exchange; the latest last
	sweeper *time.Timer // nil: nothing was idle yet
	due     bool        // the sweeper comes; it does as long as there is something
	closed  bool
}

// trip makes an exchange over a connection that is open, or over a new one. A request without a body that opens a stream has a new
// one always: it keeps the connection for long, and there is no doubt that the server has got it.
func (s *lanes) trip(ctx context.Context, r *errand) (*http.Response, error) {
	var l *lane
	if r.method != http.MethodGet {
		l = s.take()
	}
	if l == nil {
		conn, err := s.road.dial(ctx, "tcp", s.addr)
		if err != nil {
			return nil, err
		}
		if l, err = newLane(s, conn); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return l.trip(ctx, r)
}

// take takes the connection that was used last, and is open and silent: what a server says on it now would be read as the answer to
// the next request.
func (s *lanes) take() *lane {
	for {
		s.mu.Lock()
		last := len(s.idle) - 1
		if last < 0 {
			s.mu.Unlock()
			return nil
		}
		l := s.idle[last]
		s.idle[last] = nil
		s.idle = s.idle[:last]
		s.mu.Unlock()
		if !l.stale(time.Now()) && l.silent() {
			return l
		}
		l.conn.Close()
	}
}

// keep takes back a connection that nothing is under way on.
func (s *lanes) keep(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.idle) >= idleConns {
		l.conn.Close()
		return
	}
	l.since = time.Now().Round(0)
	s.idle = append(s.idle, l)
	switch {
	case s.due:
		return
	case s.sweeper == nil:
		s.sweeper = time.AfterFunc(s.waiting, s.sweep)
	default:
		s.sweeper.Reset(s.waiting)
	}
	s.due = true
}

// sweep closes what has been idle for too long, and comes again for the rest.
func (s *lanes) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.idle = slices.DeleteFunc(s.idle, func(l *lane) bool {
		if !l.stale(now) {
			return false
		}
		l.conn.Close()
		return true
	})
	if s.due = len(s.idle) > 0; s.due {
		s.sweeper.Reset(s.waiting - now.Sub(s.idle[0].since))
	}
}

func (s *lanes) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.sweeper != nil {
		s.sweeper.Stop()
	}
	for _, l := range s.idle {
		l.conn.Close()
	}
	s.idle = nil
}
