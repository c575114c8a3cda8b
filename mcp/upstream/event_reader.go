package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"
)

// An eventReader reads server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html, section 9.2).
type eventReader struct {
	src   io.Reader
	limit int // largest event in bytes
	hold  holder
	// Bytes that were read and not consumed. Consumed bytes are never overwritten, because the data
	// of events are parts of them.
	unread []byte

	id    string        // id of the last event that had one
	retry time.Duration // the server's wait before the stream is resumed; 0: none given
}

func newEventReader(src io.Reader, limit int, hold holder) *eventReader {
	return &eventReader{src: src, limit: limit, hold: hold}
}

// resume continues with the rest of the events, which come from another source.
func (r *eventReader) resume(src io.Reader) { r.src, r.unread = src, nil }

// firstRead is the size of the first buffer in bytes: most events are smaller.
const firstRead = 1 << 10

// nextEvent reads one event: its name ("" means "message") and its data, which the caller
// may keep. If the event exceeds the limit, the error is bufio.ErrTooLong.
func (r *eventReader) nextEvent() (name string, data []byte, err error) {
	if err := r.hold(0); err != nil {
		return "", nil, err
	}
	for size, hasData := 0, false; ; {
		line, err := r.nextLine(size)
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

// nextLine reads a line with its line feed, as a part of the buffer. The event has size bytes before
// it. If they exceed the limit together, the error is bufio.ErrTooLong.
func (r *eventReader) nextLine(size int) ([]byte, error) {
	for searched := 0; ; {
		length := len(r.unread)
		feed := bytes.IndexByte(r.unread[searched:], '\n')
		if feed >= 0 {
			length = searched + feed + 1
		}
		if length > r.limit-size {
			return nil, bufio.ErrTooLong
		}
		if feed >= 0 {
			line := r.unread[:length:length]
			r.unread = r.unread[length:]
			return line, r.hold(size + length)
		}

		searched = length
		if err := r.hold(size + searched); err != nil {
			return nil, err
		}
		if err := r.readMore(); err != nil {
			return nil, err
		}
	}
}

// readMore reads at least one byte, or returns an error. It reads at most memoryStep bytes, for which
// no memory is reserved yet.
func (r *eventReader) readMore() error {
	if len(r.unread) == cap(r.unread) {
		r.unread = slices.Grow(r.unread, max(firstRead, len(r.unread)))
	}
	for {
		spare := r.unread[len(r.unread):cap(r.unread)]
		n, err := r.src.Read(spare[:min(len(spare), memoryStep)])
		r.unread = r.unread[:len(r.unread)+n]
		switch {
		case n > 0:
			return nil // an error comes again
		case err != nil:
			return err
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
