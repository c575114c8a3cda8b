// Package web has what the HTTP listeners of pgfsm have in common.
package web

import (
	"container/list"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
)

// Shed lets server have at most so many connections, and returns the listener that it serves on. When all places are taken, a new
// connection takes the place of one that is idle or has not sent a request: first of those whose last request did not authenticate,
// then of the others, the one that has waited longest. If every connection has a request under way, the new one waits.
//
// It sets server.ConnState and server.ConnContext. The handler calls [Authenticated].
func Shed(server *http.Server, on net.Listener, connections int) net.Listener {
	l := &listener{Listener: on, free: make(chan struct{}, connections), closed: make(chan struct{})}
	server.ConnState = l.state
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	return l
}

// Authenticated notes that the caller of a request is known. ctx is the request's. On other listeners it does nothing.
func Authenticated(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.of.mu.Lock()
		c.known = true
		c.of.mu.Unlock()
	}
}

type connKey struct{}

type listener struct {
	net.Listener
	free   chan struct{}
	once   sync.Once
	closed chan struct{}

	mu              sync.Mutex
	strangers, idle list.List // of *conn, the longest wait first: without a request, and if one came, whose caller is known
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	select {
	case l.free <- struct{}{}:
		return &conn{Conn: c, of: l}, nil
	default:
	}
	l.shed()
	select {
	case l.free <- struct{}{}:
		return &conn{Conn: c, of: l}, nil
	case <-l.closed:
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// shed closes the connection whose place a new one takes.
func (l *listener) shed() {
	l.mu.Lock()
	front := l.strangers.Front()
	if front == nil {
		front = l.idle.Front()
	}
	var c *conn
	if front != nil {
		c = front.Value.(*conn)
		c.leave()
	}
	l.mu.Unlock()
	if c != nil {
		_ = c.Close() // its client is told nothing more
	}
}

// state is [http.Server.ConnState]. A connection is active when the header of a request is there.
func (l *listener) state(n net.Conn, s http.ConnState) {
	c, ok := n.(*conn)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c.leave()
	switch s {
	case http.StateNew, http.StateIdle:
		if c.queue = &l.strangers; c.known {
			c.queue = &l.idle
		}
		c.place = c.queue.PushBack(c)
	case http.StateActive:
		c.known = false // until this request authenticates
	}
}

// A conn gives its place back once, however often it is closed.
type conn struct {
	net.Conn
	of   *listener
	once sync.Once

	// The listener's lock guards these.
	known bool          // the last request authenticated
	queue *list.List    // nil: a request is under way
	place *list.Element // in queue
}

// leave takes the connection out of its queue.
func (c *conn) leave() {
	if c.queue != nil {
		c.queue.Remove(c.place)
		c.queue, c.place = nil, nil
	}
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.of.free })
	return err
}
