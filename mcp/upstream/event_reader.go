package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// An eventReader reads server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html, section 9.2).
type eventReader struct {
	src   *bufio.Reader
	limit int // largest event in bytes
	hold  holder

	id    string        // id of the last event that had one
	retry time.Duration // the server's wait before the stream is resumed; 0: none given
}

func newEventReader(src io.Reader, limit int, hold holder) *eventReader {
	return &eventReader{src: bufio.NewReader(src), limit: limit, hold: hold}
}

// nextEvent reads one event: its name ("" means "message") and its data, which the caller
// may keep. If the event exceeds the limit, the error is bufio.ErrTooLong.
func (r *eventReader) nextEvent() (name string, data []byte, err error) {
	if err := r.hold(0); err != nil {
		return "", nil, err
	}
	for size, hasData := 0, false; ; {
		line, err := readLine(r.src, r.limit-size, func(more int) error { return r.hold(size + more) })
		if err != nil {
			return "", nil, err // an incomplete event does not count
		}

		size += len(line)
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return name, data, r.hold(complete)
		}

		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))

		switch string(field) {
		case "event":
			name = string(value)
		case "data":
			if !hasData {
				data, hasData = value, true // not copied: large answers have one line
				continue
			}
			data = append(append(data, '\n'), value...)
		case "id":
			if len(value) <= maxEventID && bytes.IndexFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
				r.id = string(value)
			}
		case "retry":
			ms, err := strconv.ParseUint(string(value), 10, 31)
			if err != nil {
				continue
			}
			r.retry = time.Duration(ms) * time.Millisecond
		}
	}
}

// maxEventID bounds the event id that is sent back, in bytes.
const maxEventID = 1024

// readLine reads a line with its line feed, and reserves memory for it. If the line exceeds the
// limit, the error is bufio.ErrTooLong.
func readLine(in *bufio.Reader, limit int, hold holder) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, bufio.ErrTooLong
		}
		if err := hold(len(line) + len(part)); err != nil {
			return nil, err
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
