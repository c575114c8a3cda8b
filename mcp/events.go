package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// An eventFilter reads server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html, section
// 9.2) and writes them out again, one by one, after their data has been inspected. Only "message" events and, first, an
// SSE server's "endpoint" pass. Ids and retry times are dropped, so that the SDK never tries to resume a stream.
type eventFilter struct {
	src      *bufio.Reader
	limit    int                     // bytes of one event
	inspect  func(data []byte) error // judges the data of a message
	endpoint func(data []byte) error // judges the endpoint event; nil: there must be none, or it has come
	tooLarge func() error            // makes the error for an event over the limit

	out []byte // what may be read
	err error  // what comes after out
}

func newEventFilter(src io.Reader, limit int, inspect func([]byte) error) *eventFilter {
	return &eventFilter{src: bufio.NewReader(src), limit: limit, inspect: inspect}
}

func (f *eventFilter) Read(p []byte) (int, error) {
	for len(f.out) == 0 {
		if f.err != nil {
			return 0, f.err
		}
		f.err = f.next()
	}
	n := copy(p, f.out)
	f.out = f.out[n:]
	return n, nil
}

// next reads one event and, if it passes, puts it into out.
func (f *eventFilter) next() error {
	var name string
	var data [][]byte
	for size := 0; ; {
		line, err := f.line(f.limit - size)
		if errors.Is(err, bufio.ErrTooLong) {
			return f.tooLarge()
		}
		size += len(line)
		line = bytes.TrimRight(line, "\r\n")
		if err != nil {
			return err // what the stream's end cut off is not an event
		}
		if len(line) == 0 {
			return f.dispatch(name, data)
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			name = string(value)
		case "data":
			data = append(data, value)
		}
	}
}

func (f *eventFilter) dispatch(name string, data [][]byte) error {
	whole := bytes.Join(data, []byte("\n"))
	switch {
	case len(bytes.TrimSpace(whole)) == 0:
		return nil // a keep-alive
	case name == "endpoint" && f.endpoint != nil:
		check := f.endpoint
		f.endpoint = nil
		if err := check(whole); err != nil {
			return err
		}
		f.out = append(f.out, "event: endpoint\n"...)
	case name == "" || name == "message":
		if err := f.inspect(whole); err != nil {
			return err
		}
	default:
		return nil
	}
	for _, line := range data {
		f.out = append(f.out, "data: "...)
		f.out = append(f.out, line...)
		f.out = append(f.out, '\n')
	}
	f.out = append(f.out, '\n')
	return nil
}

// line reads up to and with the next line feed, at most limit bytes, else the error is bufio.ErrTooLong.
func (f *eventFilter) line(limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := f.src.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, bufio.ErrTooLong
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
