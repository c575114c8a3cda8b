// Package web has what the HTTP listeners of pgfsm share.
package web

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
)

// Shed lets server have at most so many connections, and returns the listener that it serves on,
// with TLS if on is one of [TLS.Listen]. When all places are taken, a new connection takes the
// place of one that is idle or has not sent a request: first of those whose last request did not
// authenticate, then of the others, the one that has waited longest. If every connection has a
// request under way, the new one waits.
//
// A request whose body has not arrived keeps its connection, but each caller has at most an eighth
// of all connections for such requests; callers without credentials have an eighth together. One
// more closes the one that has waited longest.
//
// It sets server.ConnState and server.ConnContext. The server's handler must be one of [Handler].
// It calls [Authenticated].
func Shed(server *http.Server, listen net.Listener, connections int) net.Listener {
	l := &listener{
		Listener:     listen,
		free:         make(chan struct{}, connections),
		closed:       make(chan struct{}),
		maxReceiving: max(1, connections/8),
		receiving:    make(map[string]*list.List),
	}
	server.ConnState = l.connStateChanged
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, acceptedConn(c))
	}
	if t, ok := listen.(*tlsListener); ok {
		return tls.NewListener(l, t.config)
	}
	return l
}

// acceptedConn returns the [Conn] that Accept returned for a connection of the server.
func acceptedConn(c net.Conn) *Conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return c.(*Conn)
}

// Authenticated records the caller of a request. ctx is the request's. Call it before the body is
// read. On other listeners it does nothing.
func Authenticated(ctx context.Context, caller string) {
	if c := ConnOf(ctx); c != nil {
		c.of.mu.Lock()
		c.authenticated, c.caller = true, caller
		c.of.mu.Unlock()
	}
}

// ConnOf returns the connection of a request; nil if it is not one of a listener of [Shed].
func ConnOf(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}

type connKey struct{}

type listener struct {
	net.Listener
	free   chan struct{}
	once   sync.Once
	closed chan struct{}

	mu      sync.Mutex
	waiting bool // Accept waits for a place
	// Each of *Conn, the longest wait first: by whether the last request was authenticated.
	unauthenticated, authenticated list.List

	maxReceiving int
	// The *Conn whose bodies have not arrived, by caller, the longest wait first.
	receiving map[string]*list.List
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	select {
	case l.free <- struct{}{}:
		return &Conn{Conn: c, of: l}, nil
	default:
	}
	l.setWaiting(true)
	defer l.setWaiting(false)
	l.closeOneWaiting()
	select {
	case l.free <- struct{}{}:
		return &Conn{Conn: c, of: l}, nil
	case <-l.closed:
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
}

// setWaiting notes whether Accept waits for a place.
func (l *listener) setWaiting(waiting bool) {
	l.mu.Lock()
	l.waiting = waiting
	l.mu.Unlock()
}

// Close also closes all connections without a request: [http.Server.Shutdown] would wait for those
// that never had one.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	err := l.Listener.Close()
	for l.closeOneWaiting() {
	}
	return err
}

// closeOneWaiting closes the connection that must give up its place. It reports false if there is
// none.
func (l *listener) closeOneWaiting() bool {
	l.mu.Lock()
	front := l.unauthenticated.Front()
	if front == nil {
		front = l.authenticated.Front()
	}
	var c *Conn
	if front != nil {
		c = front.Value.(*Conn)
		c.leaveQueue()
	}
	l.mu.Unlock()
	if c != nil {
		_ = c.Close() // the client gets no message
	}
	return c != nil
}

// connStateChanged is [http.Server.ConnState]. A connection is active once the header of a request
// has arrived.
func (l *listener) connStateChanged(n net.Conn, s http.ConnState) {
	c := acceptedConn(n)
	if l.updateQueue(c, s) {
		l.closeOneWaiting()
	}
}

// updateQueue queues or dequeues a connection, and reports whether Accept waits for its place.
func (l *listener) updateQueue(c *Conn, s http.ConnState) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.leaveQueue()
	switch s {
	case http.StateNew, http.StateIdle:
		if c.queue = &l.unauthenticated; c.authenticated {
			c.queue = &l.authenticated
		}
		c.place = c.queue.PushBack(c)
	case http.StateActive:
		c.authenticated, c.caller = false, "" // until this request authenticates
	}
	return l.waiting && c.queue != nil
}

// startReceiving notes that the handler begins to read the body of the connection's request.
func (l *listener) startReceiving(c *Conn) {
	l.mu.Lock()
	c.leaveQueue()
	waiting := l.receiving[c.caller]
	if waiting == nil {
		waiting = list.New()
		l.receiving[c.caller] = waiting
	}
	c.queue, c.place = waiting, waiting.PushBack(c)
	var oldest *Conn
	if waiting.Len() > l.maxReceiving {
		oldest = waiting.Front().Value.(*Conn)
		oldest.leaveQueue()
	}
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // the client gets no message
	}
}

// endReceiving records that the server no longer waits for the connection's body.
func (l *listener) endReceiving(c *Conn) {
	l.mu.Lock()
	c.leaveQueue()
	l.mu.Unlock()
}

// A Conn is a connection of a listener of [Shed]. It gives its place back once, however often it is
// closed.
type Conn struct {
	net.Conn
	of   *listener
	once sync.Once

	// The listener's lock guards these.
	authenticated bool          // the last request was authenticated
	caller        string        // the caller of the last request; empty without credentials
	queue         *list.List    // nil: a request is under way, and its body has arrived or is not read
	place         *list.Element // the connection's element in queue
}

// leaveQueue removes the connection from its queue.
func (c *Conn) leaveQueue() {
	if c.queue == nil {
		return
	}
	c.queue.Remove(c.place)
	if c.queue.Len() == 0 && c.queue == c.of.receiving[c.caller] {
		delete(c.of.receiving, c.caller)
	}
	c.queue, c.place = nil, nil
}

func (c *Conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.of.free })
	return err
}

// Cut closes the connection at once and drops what the system has buffered.
func (c *Conn) Cut() {
	if l, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0) // it is closed in any case
	}
	_ = c.Close() // the writer gets the error
}
