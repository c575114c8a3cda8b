package session

import (
	"strconv"
	"strings"
	"sync"
)

// Bounds of the events that one session keeps for Last-Event-ID.
const (
	maxEvents     = 256
	maxEventBytes = 1 << 20 // a larger event is not kept
	eventOverhead = 64      // bytes of an event beside its data
)

// An Event is one server-sent event of a session.
type Event struct {
	ID   string // empty: the event cannot be asked for again
	Name string
	Data []byte
}

// A Stream is one event stream of a session: the answer to one request, or the stream of messages that belong to no request.
type Stream struct {
	number int
	next   int  // index of the next event
	logged int  // events that are in the log
	closed bool // there will be no next event
	reader *Reader
}

type loggedEvent struct {
	stream *Stream
	index  int
	event  Event
}

// An EventLog keeps the last events of a session's streams, so that a client that lost a connection can go on with Last-Event-ID.
type EventLog struct {
	mu      sync.Mutex
	last    int // number of the newest stream
	streams map[int]*Stream
	events  []loggedEvent // the oldest first
	bytes   int
	held    reservation
}

func (l *EventLog) init(held reservation) {
	l.streams, l.held = map[int]*Stream{0: {}}, held
}

// General is the stream of messages that belong to no request. It has the number 0 and never closes.
func (l *EventLog) General() *Stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.streams[0]
}

// Begin adds the stream of one answer, which r reads.
func (l *EventLog) Begin(r *Reader) *Stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	s := &Stream{number: l.last, reader: r}
	l.streams[s.number] = s
	return s
}

// Add logs an event and returns it with its id. Ours reports whether r is the stream's reader and has to write the event; if another
// connection reads the stream, it is woken. Last says that no event follows.
func (l *EventLog) Add(on *Stream, r *Reader, name string, data []byte, last bool) (e Event, ours bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e = Event{ID: strconv.Itoa(on.number) + "_" + strconv.Itoa(on.next), Name: name, Data: data}
	l.events = append(l.events, loggedEvent{on, on.next, e})
	l.bytes += len(data) + eventOverhead
	on.next++
	on.logged++
	on.closed = last
	for len(l.events) > maxEvents || l.bytes > maxEventBytes || !l.held.grow(l.bytes) {
		l.dropOldest()
	}
	if on.reader != nil && on.reader != r {
		on.reader.wake()
	}
	return e, on.reader == r
}

// close drops all events, and those that are added later.
func (l *EventLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.events) > 0 {
		l.dropOldest()
	}
	l.held.release()
	l.held.closed = true
}

// dropOldest drops the oldest event, and its stream if that is closed and has no other event.
func (l *EventLog) dropOldest() {
	e := l.events[0]
	l.events[0] = loggedEvent{}
	l.events = l.events[1:]
	l.bytes -= len(e.event.Data) + eventOverhead
	if e.stream.logged--; e.stream.logged == 0 && e.stream.closed {
		delete(l.streams, e.stream.number)
		if e.stream.reader != nil {
			e.stream.reader.wake()
		}
	}
}

// Attach makes r the reader of a stream. The former reader is told.
func (l *EventLog) Attach(on *Stream, r *Reader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if on.reader != nil {
		close(on.reader.Replaced)
	}
	on.reader = r
}

// Detach leaves a stream without a reader if r is its reader.
func (l *EventLog) Detach(on *Stream, r *Reader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if on.reader == r {
		on.reader = nil
	}
}

// After returns the events of a stream from an index on, and whether no event follows them. Complete is false if the log has dropped some.
func (l *EventLog) After(on *Stream, index int) (events []Event, last, complete bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.stream == on && e.index >= index {
			events = append(events, e.event)
		}
	}
	return events, on.closed, index+len(events) == on.next
}

// Find returns the stream of the event with an id, and the index of the event after it. Stream is nil if there is no such event.
func (l *EventLog) Find(id string) (on *Stream, next int) {
	a, b, ok := strings.Cut(id, "_")
	number, err := strconv.ParseUint(a, 10, 31)
	index, err2 := strconv.ParseUint(b, 10, 31)
	if !ok || err != nil || err2 != nil {
		return nil, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if on = l.streams[int(number)]; on == nil || int(index) >= on.next {
		return nil, 0
	}
	return on, int(index) + 1
}
