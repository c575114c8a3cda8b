package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"syscall"
	"time"
)

const (
	// laneBuffer is what a response is read with.
	laneBuffer = 4 << 10
	// atOnce is the length of a request that is written before anything is read: a system takes so much for a connection that has
	// nothing else to send without waiting for the server. A longer one is written beside the reading, since a server may answer
	// before it has read the whole.
	atOnce = 16 << 10
)

var errLongHead = fmt.Errorf("server response headers exceeded %d bytes", maxHTTPHeader)

// A lane is one connection. An exchange on it is made in the goroutine of who asks: a request is written in one go, and the response
// read as net/http reads it.
type lane struct {
	home *lanes
	conn net.Conn
	raw  syscall.RawConn
	src  *bufio.Reader // of the lane itself, see Read
	room int64         // how much may still be read of a head

	since time.Time // when it was given back, by the clock on the wall, which goes on while the machine sleeps
	out   []byte    // what a request is spelled in

	cut     func()      // ends what is under way
	detach  func() bool // keeps the end of the exchange's context from doing that
	writing chan error  // what comes of a long request; nil: the request is written

	probe  func(fd uintptr) bool
	probed bool // see silent

	glimpse func(fd uintptr) bool
	early   [16]byte // what was read without waiting; see glance
	seen    []byte   // as far as it is not used
}

func newLane(home *lanes, conn net.Conn) (*lane, error) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil, errors.New("the connection is none of the system's")
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	l := &lane{home: home, conn: conn, raw: raw}
	l.src = bufio.NewReaderSize(l, laneBuffer)
	l.cut = func() { l.conn.Close() }
	l.probe = func(fd uintptr) bool {
		l.probed = nothingThere(fd)
		return true
	}
	l.glimpse = func(fd uintptr) bool {
		l.seen = l.early[:takeThere(fd, l.early[:])]
		return true
	}
	return l, nil
}

// stale reports whether the lane has been idle for too long, or nobody knows for how long.
func (l *lane) stale(now time.Time) bool {
	age := now.Sub(l.since)
	return age < 0 || age >= l.home.waiting
}

// silent reports whether the server has neither closed the connection nor sent anything on it.
func (l *lane) silent() bool {
	l.probed = false
	return l.raw.Read(l.probe) == nil && l.probed
}

// glance reads the little that is there, without waiting. Read gives it first.
func (l *lane) glance() []byte {
	if len(l.seen) == 0 && l.raw.Read(l.glimpse) != nil {
		return nil
	}
	return l.seen
}

// Read reads from the connection for src, as much as there is room for.
func (l *lane) Read(p []byte) (int, error) {
	if l.room <= 0 {
		return 0, errLongHead
	}
	if len(l.seen) > 0 {
		n := copy(p[:min(int64(len(p)), l.room)], l.seen)
		l.seen = l.seen[n:]
		l.room -= int64(n)
		return n, nil
	}
	n, err := l.conn.Read(p[:min(int64(len(p)), l.room)])
	l.room -= int64(n)
	return n, err
}

// trip makes one exchange. Afterwards the lane is closed, or belongs to the response's body.
func (l *lane) trip(ctx context.Context, r *errand) (*http.Response, error) {
	var err error
	if l.out, err = r.spell(l.out[:0]); err != nil {
		l.home.keep(l)
		return nil, err
	}
	l.writing, l.detach = nil, context.AfterFunc(ctx, l.cut)
	var resp *http.Response
	if err = l.emit(ctx, r); err == nil {
		resp, err = l.response()
	}
	if err != nil {
		l.release(false)
		return nil, err
	}
	open := !resp.Close && resp.StatusCode >= 200
	if resp.ContentLength == 0 {
		l.release(open)
		resp.Body = http.NoBody
		return resp, nil
	}
	resp.Body = &laneBody{lane: l, src: resp.Body, open: open}
	return resp, nil
}

// emit writes the request, whose head is spelled. Only here bytes leave for the server.
func (l *lane) emit(ctx context.Context, r *errand) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if r.permit != nil {
		r.permit.touched.Store(true) // nothing of it is on the wire before this
	}
	if len(l.out)+len(r.frame) <= atOnce {
		l.out = append(l.out, r.frame...)
		_, err := l.conn.Write(l.out)
		return err
	}
	parts := net.Buffers{l.out, r.frame}
	done := make(chan error, 1)
	l.writing = done
	go func() {
		_, err := parts.WriteTo(l.conn)
		done <- err
	}()
	return nil
}

// response reads the head of the response. Those that only say that another comes are left out; all of them together have the room
// that one has.
func (l *lane) response() (*http.Response, error) {
	l.room = maxHTTPHeader
	if _, err := l.src.Peek(1); err != nil { // a connection that ends here is not one that ends in a head
		return nil, err
	}
	if resp := l.ordinary(); resp != nil {
		l.room = math.MaxInt64
		return resp, nil
	}
	for {
		resp, err := http.ReadResponse(l.src, nil)
		switch {
		case err != nil && l.room <= 0:
			return nil, errLongHead
		case err != nil:
			return nil, err
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errSwitched
		case resp.StatusCode >= 200 || resp.StatusCode < 100:
			l.room = math.MaxInt64
			return resp, nil
		}
	}
}

// release ends the exchange. A connection that may be open is kept if the request was written whole, and nothing has come behind the
// response.
func (l *lane) release(open bool) {
	intact := l.detach()
	l.detach = nil // it holds on to the context
	if intact && open && l.src.Buffered() == 0 && len(l.seen) == 0 && l.wrote() {
		l.home.keep(l)
		return
	}
	l.conn.Close()
	if l.writing != nil {
		<-l.writing // at once now: the frame is the caller's again
	}
}

// wroteWithin is for how long who writes a long request may take to say that it is written, once the whole answer is there.
const wroteWithin = 50 * time.Millisecond

// wrote reports whether the request was written whole. A server that answers before it has read everything may never read the rest.
func (l *lane) wrote() bool {
	if l.writing == nil {
		return true
	}
	late := time.NewTimer(wroteWithin)
	defer late.Stop()
	select {
	case err := <-l.writing:
		l.writing = nil
		return err == nil
	case <-late.C:
		return false
	}
}

// A laneBody is the body of a response. It gives the connection back when it is read to its end. It is for one goroutine at a time.
type laneBody struct {
	lane *lane // nil: it is given back, or closed
	src  io.Reader
	open bool  // the server leaves the connection open behind the body
	err  error // of the last read
}

func (b *laneBody) Read(p []byte) (int, error) {
	if b.lane == nil {
		return 0, b.err
	}
	n, err := b.src.Read(p)
	if err != nil {
		b.end(err, b.open && err == io.EOF)
	}
	return n, err
}

// Close lets go of a body that was not read to its end, and of the connection with it.
func (b *laneBody) Close() error {
	if b.lane != nil {
		b.end(errBodyClosed, false)
	}
	return nil
}

// between reports whether all that was read of the body ended with a chunk, so that its end may be what comes next.
func (b *laneBody) between() bool {
	parts, ok := b.src.(*chunkedBody)
	return ok && b.lane != nil && parts.between() && b.lane.src.Buffered() == 0
}

// settle reads the end of the body, if nothing else can come and it has come already. It does not wait, and reports whether the body is over.
func (b *laneBody) settle() bool {
	if b.lane == nil {
		return true
	}
	if !b.between() || string(b.lane.glance()) != lastChunk {
		return false
	}
	_, err := b.Read(make([]byte, 1))
	return err != nil
}

var errBodyClosed = errors.New("the body of the response is closed")

func (b *laneBody) end(err error, open bool) {
	l := b.lane
	b.lane, b.err = nil, err
	l.release(open)
}
