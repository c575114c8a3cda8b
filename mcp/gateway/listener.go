package gateway

import (
	"container/list"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// A pace says how long clients may take over what, and when they hear something if there is nothing to say.
type pace struct {
	header time.Duration // for the header of a request
	body   time.Duration // for its body
	write  time.Duration // for taking what is written at once; one who does not read is cut off
	idle   time.Duration // between two requests of a connection
	beat   time.Duration // between two signs of life on a stream
	prime  time.Duration // after which a request of a resumable revision is answered by a stream
	grace  time.Duration // for what is under way when the gateway is stopped
}

var usualPace = pace{
	header: 5 * time.Second, body: 15 * time.Second, write: 30 * time.Second, idle: time.Minute,
	beat: 15 * time.Second, prime: 50 * time.Millisecond, grace: 30 * time.Second,
}

// maxHeaderBytes bounds the header of a request.
const maxHeaderBytes = 32 << 10

// Serve answers clients until ctx is done, and then drains the gateway; see [Gateway.Drain]. It closes the listener.
func (g *Gateway) Serve(ctx context.Context, on net.Listener) error {
	places := g.express(atMost(on, g.options.Limits.Connections))
	server := g.server(places.bounded)
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.pace.grace)
		defer cancel()
		err := g.Drain(within)
		// What is left has a connection and nothing to say on it. The answers of those that were drained are on their way.
		last, end := context.WithTimeout(context.WithoutCancel(ctx), g.pace.header)
		defer end()
		if server.Shutdown(last) != nil {
			err = errors.Join(err, server.Close())
		}
		_ = places.finish(last) // what is left was counted by Drain
		stopped <- err
	})
	err := server.Serve(places)
	if stop() { // it broke by itself
		err = errors.Join(err, server.Close())
		_ = places.Close() // the server has closed it
		at, cut := context.WithCancel(ctx)
		cut()
		_ = places.finish(at) // it cuts off what is under way
		return err
	}
	return <-stopped
}

// server is net/http's, for the connections of a listener.
func (g *Gateway) server(places *bounded) *http.Server {
	return &http.Server{
		// Streams may live long: what reads and writes for too long is cut off where it is read and written.
		Handler: g.Handler(), ReadHeaderTimeout: g.pace.header, IdleTimeout: g.pace.idle,
		MaxHeaderBytes: maxHeaderBytes, DisableGeneralOptionsHandler: true, ConnState: places.state,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ErrorLog:    log.New(io.Discard, "", 0), // it would repeat what strangers send
	}
}

// A bounded listener has at most so many connections open as it has places. When all are taken, a connection that comes takes the place
// of the one that has been without a request for longest: so connections that ask for nothing keep nobody out. If there is none, it waits.
type bounded struct {
	net.Listener
	free   chan struct{}
	once   sync.Once
	closed chan struct{}

	mu    sync.Mutex
	quiet list.List // of *conn: those without a request, the longest first
}

func atMost(on net.Listener, places int) *bounded {
	return &bounded{Listener: on, free: make(chan struct{}, places), closed: make(chan struct{})}
}

func (b *bounded) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	select {
	case b.free <- struct{}{}:
		return b.place(c), nil
	default:
	}
	b.shed()
	select {
	case b.free <- struct{}{}:
		return b.place(c), nil
	case <-b.closed:
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
}

// place is a connection with a place.
func (b *bounded) place(c net.Conn) *conn {
	return &conn{Conn: c, of: b, reads: deadline{set: c.SetReadDeadline}, writes: deadline{set: c.SetWriteDeadline, part: writeSlack}}
}

// writeSlack is which part of its time a client may take more for what is written, so that the deadline does not move with each answer.
const writeSlack = 4

func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

// shed closes the connection that has been without a request for longest.
func (b *bounded) shed() {
	b.mu.Lock()
	var c *conn
	if e := b.quiet.Front(); e != nil {
		c = e.Value.(*conn)
		b.forget(c)
	}
	b.mu.Unlock()
	if c != nil {
		_ = c.Close() // what it did not say is lost, which is the intention
	}
}

// forget takes a connection out of the quiet ones. The caller holds the lock.
func (b *bounded) forget(c *conn) {
	if c.place != nil {
		b.quiet.Remove(c.place)
		c.place = nil
	}
}

// state is told by the server what becomes of its connections.
func (b *bounded) state(n net.Conn, s http.ConnState) {
	c, ok := n.(*conn)
	if !ok || s == http.StateActive { // see arrived
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch s {
	case http.StateNew, http.StateIdle:
		b.forget(c)
		c.place = b.quiet.PushBack(c)
	case http.StateClosed, http.StateHijacked:
		b.forget(c)
	}
}

// A conn gives its place back once, however often it is closed. Its deadlines are set when they are needed.
type conn struct {
	net.Conn
	of            *bounded
	once          sync.Once
	place         *list.Element // among the quiet ones
	reads, writes deadline

	ahead []byte    // what was read already; see express
	by    time.Time // when its first header must be there, as far as nobody has said so; the same
}

func (c *conn) Read(b []byte) (int, error) {
	if len(c.ahead) > 0 {
		n := copy(b, c.ahead)
		c.ahead = c.ahead[n:]
		return n, nil
	}
	if err := c.reads.begin(); err != nil {
		return 0, err
	}
	defer c.reads.end()
	return c.Conn.Read(b)
}

func (c *conn) Write(b []byte) (int, error) {
	if err := c.writes.begin(); err != nil {
		return 0, err
	}
	defer c.writes.end()
	return c.Conn.Write(b)
}

// SetReadDeadline is told by net/http at first when the header must be there. Some of that time may be over.
func (c *conn) SetReadDeadline(t time.Time) error {
	if by := c.by; !by.IsZero() {
		if c.by = (time.Time{}); t.After(by) {
			t = by
		}
	}
	return c.reads.want(t)
}

func (c *conn) SetWriteDeadline(t time.Time) error { return c.writes.want(t) }
func (c *conn) SetDeadline(t time.Time) error      { return errors.Join(c.reads.want(t), c.writes.want(t)) }

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.of.free })
	return err
}

// cut closes the connection at once. What the system has of it and the client has not read goes, too.
func (c *conn) cut() {
	if l, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0) // it is closed in any case
	}
	_ = c.Close() // whoever writes to it is told
}

// connKey is where a request's context has its connection.
type connKey struct{}

// arrived notes that the header of a request has come: its connection, which it returns, is not a quiet one. Nil: it is none of a listener
// of here.
func arrived(r *http.Request) *conn {
	c, ok := r.Context().Value(connKey{}).(*conn)
	if ok {
		c.of.mu.Lock()
		c.of.forget(c)
		c.of.mu.Unlock()
	}
	return c
}
