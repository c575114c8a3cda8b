package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// largest is the largest body that is read.
const largest = 64 << 20

// A response is what came back for a request. Its message is part of the caller's buffer until the next one.
type response struct {
	status  int
	session string
	closes  bool      // the other side closes the connection
	message []byte    // the JSON-RPC message, also if it came as an event
	at      time.Time // when the message was there, whole
}

// framing is what the head says about the body.
type framing struct {
	length  int // -1: not said
	chunked bool
	events  bool
}

// read reads one response to its end. Of a stream of events, the message is the first that has this member, written
// without spaces as everybody does. The bare number would not do: it may be part of what was asked for.
func (c *caller) read(id []byte) (response, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(answerWithin)); err != nil {
		return response{}, err
	}
	r, f, err := c.readHead()
	if err != nil {
		return r, fmt.Errorf("head of the response: %w", err)
	}
	c.body = c.body[:0]
	seen := 0 // of the body, in whole events
	arrived := func() {
		if f.events && r.message == nil && bytes.HasSuffix(c.body, []byte("\n\n")) {
			if r.message, seen = event(c.body, seen, id); r.message != nil {
				r.at = time.Now()
			}
		}
	}
	switch {
	case f.chunked:
		err = c.readChunks(arrived)
	case f.length >= 0:
		err = c.take(f.length)
		arrived()
	case r.status == 204 || r.status == 304:
	default:
		return r, errors.New("the response says neither its length nor that it is in chunks")
	}
	if !f.events {
		r.message, r.at = c.body, time.Now()
	}
	if err != nil {
		return r, fmt.Errorf("body of the response after %d bytes: %w", len(c.body), err)
	}
	if id != nil && !bytes.Contains(r.message, id) {
		return r, fmt.Errorf("status %d, and no message has %s: %.300q", r.status, id, c.body)
	}
	return r, nil
}

func (c *caller) line() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), err
}

func (c *caller) readHead() (r response, f framing, err error) {
	f.length = -1
	line, err := c.line()
	if err != nil {
		return r, f, err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return r, f, fmt.Errorf("status line %q", line)
	}
	if r.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return r, f, err
	}
	for {
		if line, err = c.line(); err != nil || len(line) == 0 {
			return r, f, err
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case is(name, "content-length"):
			if f.length, err = strconv.Atoi(string(value)); err != nil || f.length < 0 || f.length > largest {
				return r, f, fmt.Errorf("length %q", value)
			}
		case is(name, "transfer-encoding"):
			f.chunked = is(value, "chunked")
		case is(name, "content-type"):
			f.events = bytes.HasPrefix(value, []byte("text/event-stream"))
		case is(name, "mcp-session-id"):
			r.session = string(value)
		case is(name, "connection"):
			r.closes = is(value, "close")
		}
	}
}

// is compares without regard to case.
func is(got []byte, want string) bool {
	return len(got) == len(want) && bytes.EqualFold(got, []byte(want))
}

func (c *caller) readChunks(arrived func()) error {
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(string(line), 16, 32)
		if err != nil || len(c.body)+int(n) > largest {
			return fmt.Errorf("chunk of size %q", line)
		}
		if err := c.take(int(n)); err != nil {
			return err
		}
		if line, err = c.line(); err != nil || len(line) != 0 {
			return fmt.Errorf("end of a chunk: %q, %v", line, err)
		}
		if n == 0 {
			return nil
		}
		arrived()
	}
}

// take appends n bytes to the body.
func (c *caller) take(n int) error {
	have := len(c.body)
	c.body = append(c.body, make([]byte, n)...) // does not allocate: it grows in place
	_, err := io.ReadFull(c.in, c.body[have:])
	return err
}

// event returns the data of the first whole event, from an offset on, that has the id; and how far whole events reach.
func event(stream []byte, from int, id []byte) (message []byte, seen int) {
	for {
		n := bytes.Index(stream[from:], []byte("\n\n"))
		if n < 0 {
			return nil, from
		}
		whole := stream[from : from+n]
		from += n + 2
		for len(whole) > 0 {
			var line []byte
			line, whole, _ = bytes.Cut(whole, []byte("\n"))
			data, ok := bytes.CutPrefix(line, []byte("data:"))
			if data = bytes.TrimSpace(data); ok && len(data) > 0 && (id == nil || bytes.Contains(data, id)) {
				return data, from
			}
		}
	}
}
