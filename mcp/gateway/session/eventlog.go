package session

import (
	"strconv"
	"strings"
	"sync"
)

// Bounds of the events in one log.
const (
	maxEvents     = 256
	maxEventBytes = 1 << 20 // one larger event is kept if it is the only one
	eventOverhead = 64      // bytes that an event takes beside its data
)

// Names of events. A client that does not know "prime" only remembers its id.
const (
	EventMessage = "message"
	EventPrime   = "prime"
)

// An Event is one server-sent event of a session.
type Event struct {
	ID   string // empty: the client cannot ask for the event again
	Name string
	Data []byte
}

// A Reader is the connection that reads a [Stream]. Another connection may take its place.
type Reader struct {
	Wake     chan struct{} // has a token if there may be events to read
	Replaced chan struct{} // closed when another connection takes the stream
}

func (r *Reader) wake() {
	select {
	case r.Wake <- struct{}{}:
	default:
	}
}

// A Stream is one event stream of a session: the answer to one request, or the messages that belong to no request.
type Stream struct {
	number int
	next   int  // index of the next event
	read   int  // index of the first unread event
	logged int  // number of events in the log
	closed bool // no event follows
	reader *Reader
}

type loggedEvent struct {
	stream *Stream
	index  int
	event  Event
}

// An EventLog keeps the last events of streams, so that a client that lost a connection can resume with
// Last-Event-ID. A session has one log for the answers to its requests, and one for the messages that
// belong to no request. The stream of those messages has the number 0 and never closes.
type EventLog struct {
	mu      sync.Mutex
	last    int // number of the newest stream
	streams map[int]*Stream
	events  []loggedEvent // sorted, the oldest first
	bytes   int
	closed  bool // nothing is kept any more

	client Identity
	budget *Budget
	taken  int // bytes taken from the budget: those beyond Small
}

func (l *EventLog) init(client Identity, budget *Budget) {
	l.streams, l.client, l.budget = map[int]*Stream{0: {}}, client, budget
}

// General returns the stream of the messages that belong to no request.
func (l *EventLog) General() *Stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.streams[0]
}

// Begin adds the stream of one answer, and returns it with its reader.
func (l *EventLog) Begin() (*Stream, *Reader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	s := &Stream{number: l.last, reader: newReader()}
	l.streams[s.number] = s
	return s, s.reader
}

func newReader() *Reader {
	return &Reader{Wake: make(chan struct{}, 1), Replaced: make(chan struct{})}
}

// Add logs an event of an answer and returns it with its id. ours reports whether r is the stream's reader and must write the event; if
// another connection reads the stream, Add wakes it. last says that no event follows.
func (l *EventLog) Add(on *Stream, r *Reader, name string, data []byte, last bool) (e Event, ours bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	on.closed = last
	e = l.append(on, name, data)
	if on.reader != nil && on.reader != r {
		on.reader.wake()
	}
	return e, on.reader == r
}

// Put logs a message that belongs to no request. Without a reader it drops the oldest messages to make room. It reports false if there is
// a reader that does not read.
func (l *EventLog) Put(message []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	general := l.streams[0]
	l.append(general, EventMessage, message)
	if general.reader == nil {
		return true
	}
	general.reader.wake()
	return general.next-general.logged <= general.read
}

func (l *EventLog) append(on *Stream, name string, data []byte) Event {
	e := Event{ID: strconv.Itoa(on.number) + "_" + strconv.Itoa(on.next), Name: name, Data: data}
	l.events = append(l.events, loggedEvent{on, on.next, e})
	l.bytes += len(data) + eventOverhead
	on.next++
	on.logged++

	for len(l.events) > maxEvents || l.bytes > maxEventBytes && len(l.events) > 1 || !l.fitBudget() {
		l.dropOldest()
	}
	return e
}

// fitBudget makes the log hold as much of the budget as its events need. It reports false if the budget has too little left.
func (l *EventLog) fitBudget() bool {
	if l.closed {
		return len(l.events) == 0
	}
	missing := max(0, l.bytes-Small) - l.taken
	if missing > 0 && !l.budget.Take(l.client, missing) {
		return false
	}
	if missing < 0 {
		l.budget.Return(l.client, -missing)
	}
	l.taken += missing
	return true
}

// dropOldest drops the oldest event. It also drops the event's stream if that is closed and has no other event.
func (l *EventLog) dropOldest() {
	e := l.events[0]
	l.events[0] = loggedEvent{}
	l.events = l.events[1:]
	l.bytes -= len(e.event.Data) + eventOverhead
	if e.stream.reader == nil && e.index >= e.stream.read {
		e.stream.read = e.index + 1
	}
	if e.stream.logged--; e.stream.logged == 0 && e.stream.closed {
		delete(l.streams, e.stream.number)
		if e.stream.reader != nil {
			e.stream.reader.wake()
		}
	}
}

// close drops all events, and all that are added later.
func (l *EventLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.events) > 0 {
		l.dropOldest()
	}
	l.fitBudget()
	l.closed = true
}

// Attach returns a new reader of a stream and tells the former one. If there is a former reader and replace is false, Attach returns nil.
func (l *EventLog) Attach(on *Stream, replace bool) *Reader {
	l.mu.Lock()
	defer l.mu.Unlock()
	if on.reader != nil {
		if !replace {
			return nil
		}
		close(on.reader.Replaced)
	}

	on.reader = newReader()
	on.reader.wake()
	return on.reader
}

// Detach leaves a stream without a reader if r is its reader.
func (l *EventLog) Detach(on *Stream, r *Reader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if on.reader == r {
		on.reader = nil
	}
}

// attached reports whether the stream of the messages that belong to no request has a reader.
func (l *EventLog) attached() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.streams[0].reader != nil
}

// Unread returns the unread events of a stream and marks them as read.
func (l *EventLog) Unread(on *Stream) []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.eventsFrom(on, on.read)
}

// After returns the events of a stream from an index on. last reports that no
// event follows them; complete is false if the log has dropped some.
func (l *EventLog) After(on *Stream, index int) (events []Event, last, complete bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events = l.eventsFrom(on, index)
	return events, on.closed, index+len(events) == on.next
}

func (l *EventLog) eventsFrom(on *Stream, index int) (events []Event) {
	for _, e := range l.events {
		if e.stream == on && e.index >= index {
			events = append(events, e.event)
		}
	}
	on.read = on.next
	return events
}

// find returns the stream of an event, and the index of the next one. on is nil if there is no such event.
func (l *EventLog) find(number, index int) (on *Stream, next int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if on = l.streams[number]; on == nil || index >= on.next {
		return nil, 0
	}
	return on, index + 1
}

// FindEvent returns the log and the stream of the event with this id, and the index of the next event. on is nil if there is no such event.
func (s *Session) FindEvent(id string) (log *EventLog, on *Stream, next int) {
	a, b, ok := strings.Cut(id, "_")
	number, err := strconv.ParseUint(a, 10, 31)
	index, err2 := strconv.ParseUint(b, 10, 31)
	if !ok || err != nil || err2 != nil {
		return nil, nil, 0
	}
	if log = &s.Answers; number == 0 {
		log = &s.Outgoing
	}
	on, next = log.find(int(number), int(index))
	return log, on, next
}
