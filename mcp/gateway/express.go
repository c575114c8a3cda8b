package gateway

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// An express serves connections as long as what comes on them are ordinary requests: an [opening] and a body, answered in the goroutine that
// has read them. Every other connection it gives on to net/http's server, whose listener it is, with all that was read of it, for good.
// What net/http does for each request costs more than reading and answering it, most of all a goroutine that reads ahead to see the client
// go: calls of sessions do not end with their connections, so there is nobody whom it could tell.
type express struct {
	*bounded
	gateway *Gateway
	others  chan net.Conn // for net/http
	failed  chan error    // of accepting, for net/http too, which knows when to try again
	begin   sync.Once
	all     sync.WaitGroup

	direct map[*conn]struct{} // those that are served here; the listener's lock is held
	ending bool               // the same
}

func (g *Gateway) express(on *bounded) *express {
	return &express{bounded: on, gateway: g, others: make(chan net.Conn), failed: make(chan error), direct: make(map[*conn]struct{})}
}

// Accept returns the next connection that is not for here.
func (e *express) Accept() (net.Conn, error) {
	e.begin.Do(func() { e.all.Go(e.accept) })
	select {
	case c := <-e.others:
		return c, nil
	case err := <-e.failed:
		return nil, err
	case <-e.closed:
		return nil, net.ErrClosed
	}
}

// accept takes every connection that comes, until the listener is closed.
func (e *express) accept() {
	for {
		c, err := e.bounded.Accept()
		if err == nil {
			e.add(c.(*conn))
			e.all.Go(func() { e.serve(c.(*conn)) })
			continue
		}
		select {
		case e.failed <- err:
		case <-e.closed:
			return
		}
	}
}

// Close takes no more connections, and closes those on which nothing is under way.
func (e *express) Close() error {
	err := e.bounded.Close()
	e.mu.Lock()
	e.ending = true
	e.mu.Unlock()
	e.end(func(c *conn) bool { return c.place != nil })
	return err
}

// end closes the connections that are wanted.
func (e *express) end(wanted func(*conn) bool) {
	e.mu.Lock()
	var all []*conn
	for c := range e.direct { // in any order: all of them are closed
		if wanted(c) {
			all = append(all, c)
		}
	}
	e.mu.Unlock()
	for _, c := range all {
		_ = c.Close() // whoever reads from it or writes to it is told
	}
}

// finish waits for what is under way, until ctx is done. Then it cuts it off, and waits no more. The listener is closed already.
func (e *express) finish(ctx context.Context) error {
	e.begin.Do(func() {}) // what has not begun does not begin any more
	over := make(chan struct{})
	go func() {
		defer close(over)
		e.all.Wait()
	}()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		e.end(func(*conn) bool { return true })
		return ctx.Err()
	}
}

// rest puts a connection among the quiet ones. False: it is to be closed.
func (e *express) rest(c *conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ending {
		return false
	}
	e.forget(c)
	c.place = e.quiet.PushBack(c)
	return true
}

// add notes a connection that is new. It is a quiet one already: the next that comes may need its place.
func (e *express) add(c *conn) {
	e.mu.Lock()
	e.direct[c] = struct{}{}
	e.mu.Unlock()
	e.rest(c) // whoever serves it sees that the end has come
}

// over reports whether the listener is closed.
func (e *express) over() bool {
	select {
	case <-e.closed:
		return true
	default:
		return false
	}
}

// drop forgets a connection that is closed.
func (e *express) drop(c *conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forget(c)
	delete(e.direct, c)
}

// directBuffer is what requests are read with. An opening that does not fit is not ordinary.
const directBuffer = 4 << 10

// longIdle is by which part of the time between two requests a connection may be idle for longer, so that its deadline does not move with
// each of them.
const longIdle = 4

// A direct is one connection that is served here.
type direct struct {
	*express
	conn  *conn
	dates *dates

	buf      [directBuffer]byte
	from, to int          // what was read and not used
	until    time.Time    // when the connection has been idle for too long
	request  http.Request // what all requests have in common
	body     rest         // of the request that is answered
	out      []byte       // for the next response
	leave    context.CancelFunc
}

// serve serves a connection to its end, or gives it on.
func (e *express) serve(c *conn) {
	d := &direct{express: e, conn: c, dates: &e.gateway.dates}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), connKey{}, c))
	defer cancel()
	d.leave = cancel
	defer func() {
		if recover() != nil { // as net/http does: a bug costs the client its connection, and nobody else
			d.close()
		}
	}()
	d.request = *(&http.Request{Method: http.MethodPost, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: c.RemoteAddr().String()}).
		WithContext(ctx)
	for served := false; d.next(); served = true {
		if served {
			d.from += lineEnds(d.buf[d.from:d.to])
		}
		var o opening
		size := o.read(d.buf[d.from:d.to])
		if size == 0 {
			if !served {
				c.by = d.until
			}
			d.giveOn()
			return
		}
		d.from += size
		if !d.answer(&o) {
			break
		}
	}
	d.close()
}

// close ends the connection. A client that is gone is told nothing.
func (d *direct) close() {
	d.drop(d.conn)
	_ = d.conn.Close()
}

// next waits until there is something to read.
func (d *direct) next() bool {
	if d.from < d.to { // it came together with what was before it
		d.to = copy(d.buf[:], d.buf[d.from:d.to])
		d.from = 0
		return true
	}
	pace := &d.gateway.pace
	now := time.Now()
	switch {
	case d.until.IsZero(): // a connection that is new says something soon
		d.until = now.Add(pace.header)
	case d.until.Sub(now) < pace.idle:
		d.until = now.Add(pace.idle + pace.idle/longIdle)
	}
	if !d.rest(d.conn) || d.conn.reads.want(d.until) != nil {
		return false
	}
	var err error
	d.from = 0
	d.to, err = d.conn.Read(d.buf[:])
	return err == nil
}

// lineEnds is how much of what comes behind a request is line ends, which some clients put behind a body (RFC 9112, section 2.2). As many are
// left out as net/http leaves out.
func lineEnds(text []byte) int {
	const most = 4
	return min(most, len(text)-len(bytes.TrimLeft(text, "\r\n")))
}

// giveOn gives the connection to net/http, with what was read.
func (d *direct) giveOn() {
	_ = d.conn.SetDeadline(time.Time{}) // those of before are not for what net/http reads, and writes by itself
	d.mu.Lock()
	delete(d.direct, d.conn) // it stays among the quiet ones
	d.mu.Unlock()
	d.conn.ahead = slices.Clone(d.buf[d.from:d.to])
	select {
	case d.others <- d.conn:
	case <-d.closed:
		d.close() // as it is with connections that were not accepted yet
	}
}

// read reads from what is there, and then from the connection.
func (d *direct) read(p []byte) (int, error) {
	if d.from < d.to {
		n := copy(p, d.buf[d.from:d.to])
		d.from += n
		return n, nil
	}
	return d.conn.Read(p)
}

// skip leaves out what the handler has not read of a body. False: it has not come yet.
func (d *direct) skip() bool {
	if d.body.left == 0 { // then somebody may read ahead at the moment; see attend
		return true
	}
	if d.body.left > int64(d.to-d.from) {
		return false
	}
	d.from += int(d.body.left)
	d.body.left = 0
	return true
}

// answer answers a request, and reports whether another may come.
func (d *direct) answer(o *opening) bool {
	d.body = rest{d, o.Length}
	r := new(http.Request)
	*r = d.request
	r.Header, r.Host, r.ContentLength, r.Body = o.Header, o.Host, o.Length, &d.body
	r.URL, r.RequestURI = &url.URL{Path: o.path}, o.path
	w := &reply{of: d, header: make(http.Header, usualHeaders), out: d.out[:0]}
	(*front)(d.gateway).ServeHTTP(w, r)
	again := w.finish()
	if cap(w.out) <= 2*directBuffer {
		d.out = w.out
	}
	if w.last && w.err == nil {
		d.linger()
	}
	return again
}

// Bounds of what is read of a client that was answered before it had said everything: closed at once, the connection might take the answer
// with it.
const (
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 256 << 10
)

func (d *direct) linger() {
	if c, ok := d.conn.Conn.(interface{ CloseWrite() error }); ok && c.CloseWrite() == nil && d.conn.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, d.conn, lingerBytes)
	}
}

// attend is the context of a request, which ends when its client goes, and when the returned func is called. What was sent of the request was
// read; what comes behind it meanwhile is kept, as far as there is room. It is for those that end with their connection; net/http does so
// for all.
func (d *direct) attend(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	d.to = copy(d.buf[:], d.buf[d.from:d.to])
	d.from = 0
	if d.to == len(d.buf) || d.conn.SetReadDeadline(time.Time{}) != nil { // so much more is there that nobody is gone
		return ctx, cancel
	}
	done, ended, to := make(chan struct{}), make(chan struct{}), d.to
	go func() {
		defer close(ended)
		for to < len(d.buf) {
			n, err := d.conn.Read(d.buf[to:])
			if to += n; err == nil {
				continue
			}
			select {
			case <-done: // that is why there is an error
			default:
				d.leave()
			}
			return
		}
	}()
	return ctx, func() {
		close(done)
		_ = d.conn.SetReadDeadline(time.Unix(1, 0))
		<-ended
		d.to = to
		d.until = time.Now() // the deadline is another one now
		cancel()
	}
}
