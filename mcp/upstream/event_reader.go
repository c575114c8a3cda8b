package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// An eventReader reads server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html, section 9.2).
type eventReader struct {
	src   *bufio.Reader
	limit int // bytes of one event

	id    string        // of the last event that had one
	retry time.Duration // how long to wait before the stream is asked for again; 0: the server has not said
}

func newEventReader(src io.Reader, limit int) *eventReader {
	return &eventReader{src: bufio.NewReader(src), limit: limit}
}

// next reads one event: its name, "" being the same as "message", and its data, which is the caller's. Over the limit the
// error is bufio.ErrTooLong.
func (r *eventReader) next() (name string, data []byte, err error) {
	for size, some := 0, false; ; {
		line, err := readLine(r.src, r.limit-size)
		if err != nil {
			return "", nil, err // what the stream's end cut off is not an event
		}
		size += len(line)
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return name, data, nil
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			name = string(value)
		case "data":
			if !some {
				data, some = value, true // not copied: large answers are one line
				continue
			}
			data = append(append(data, '\n'), value...)
		case "id":
			if len(value) <= maxEventID && bytes.IndexFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
				r.id = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				r.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// maxEventID is the length of an event's id that can be sent back, in bytes.
const maxEventID = 1024

// readLine reads up to and with the next line feed, at most limit bytes, else the error is bufio.ErrTooLong.
func readLine(in *bufio.Reader, limit int) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, bufio.ErrTooLong
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
