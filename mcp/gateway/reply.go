package gateway

import (
	"cmp"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A reply is the response to a request of a direct connection, as a handler writes it. What is written goes out when the handler flushes or
// returns, in one go with the head. Like net/http's it is for one goroutine at a time.
type reply struct {
	of     *direct
	header http.Header
	status int  // zero: the handler has not said it
	begun  bool // the head is spelled
	parts  bool // the body goes out in chunks, since nobody has said how long it is
	last   bool // the connection is closed behind it
	left   int64
	out    []byte // what is spelled and not written
	err    error  // of the connection
}

// writtenAtOnce is the length of a body up to which it is copied, so that it goes out together with what is in front of it.
const writtenAtOnce = 16 << 10

// usualHeaders is how many headers an answer usually has at most. It may have more.
const usualHeaders = 8

func (r *reply) Header() http.Header { return r.header }

func (r *reply) WriteHeader(status int) { r.status = cmp.Or(r.status, status) }

func (r *reply) Write(p []byte) (int, error) {
	if !r.begun {
		r.begin(-1)
	}
	switch {
	case len(p) == 0:
		return 0, r.err
	case r.parts:
		r.out = append(strconv.AppendInt(r.out, int64(len(p)), 16), "\r\n"...)
	case int64(len(p)) > r.left:
		return 0, http.ErrContentLength
	default:
		r.left -= int64(len(p))
	}
	if len(p) <= writtenAtOnce {
		r.out = append(r.out, p...)
	} else if r.send(); r.err == nil {
		r.write(p)
	}
	if r.parts {
		r.out = append(r.out, "\r\n"...)
	}
	return len(p), r.err
}

// FlushError is what [http.ResponseController] flushes with.
func (r *reply) FlushError() error {
	if !r.begun {
		r.begin(-1)
	}
	r.send()
	return r.err
}

func (r *reply) SetReadDeadline(t time.Time) error  { return r.of.conn.SetReadDeadline(t) }
func (r *reply) SetWriteDeadline(t time.Time) error { return r.of.conn.SetWriteDeadline(t) }

// send writes what is spelled.
func (r *reply) send() {
	if r.err == nil && len(r.out) > 0 {
		r.write(r.out)
	}
	r.out = r.out[:0]
}

// write writes to the client. One who does not read is gone.
func (r *reply) write(p []byte) {
	if _, r.err = r.of.conn.Write(p); r.err != nil {
		r.of.leave()
	}
}

// begin spells the head. The length is that of the body, if that is known without the header; else it is negative.
func (r *reply) begin(length int64) {
	r.begun = true
	r.status = cmp.Or(r.status, http.StatusOK)
	r.out = append(strconv.AppendInt(append(r.out, "HTTP/1.1 "...), int64(r.status), 10), ' ')
	r.out = append(append(r.out, http.StatusText(r.status)...), "\r\n"...)
	if said, ok := r.header["Content-Length"]; ok {
		r.left, _ = strconv.ParseInt(said[0], 10, 64)
	} else if length >= 0 && r.status != http.StatusNoContent {
		r.header["Content-Length"] = []string{strconv.FormatInt(length, 10)}
	} else if r.parts = length < 0; r.parts {
		r.header["Transfer-Encoding"] = []string{"chunked"}
	}
	if r.header["Date"] == nil {
		r.header["Date"] = r.of.dates.at(time.Now())
	}
	if r.last = first(r.header, "Connection") == "close" || !r.of.skip() || r.of.over(); r.last {
		r.header["Connection"] = []string{"close"}
	}
	names := make([]string, 0, usualHeaders)
	for name := range r.header { // sorted below
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range r.header[name] {
			r.out = append(append(append(r.out, name...), ": "...), oneLine.Replace(value)...)
			r.out = append(r.out, "\r\n"...)
		}
	}
	r.out = append(r.out, "\r\n"...)
}

// oneLine keeps a value from ending its line.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

// finish ends the response, and reports whether another request may come on the connection.
func (r *reply) finish() bool {
	if !r.begun {
		r.begin(0)
	}
	if r.parts {
		r.out = append(r.out, "0\r\n\r\n"...)
	}
	r.send()
	return r.err == nil && r.left == 0 && !r.last
}

// A rest is the body of a request of a direct connection, as far as it was not read.
type rest struct {
	of   *direct
	left int64
}

func (b *rest) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.of.read(p[:min(int64(len(p)), b.left)])
	if b.left -= int64(n); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (b *rest) Close() error { return nil }
