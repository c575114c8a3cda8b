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

// A stream is one event stream of a session: the answer to one request, or the messages that belong
// to no request.
type stream struct {
	number int
	next   int  // index of the next event
	read   int  // index of the first unread event
	logged int  // number of events in the log
	closed bool // no event follows
	reader *Reader
}

type loggedEvent struct {
	stream *stream
	index  int
	event  Event
}

// An EventLog keeps the last events of streams, so that a client that lost a connection can resume
// with Last-Event-ID. A session has one log for the answers to its requests, and one for the
// messages that belong to no request. The stream of those messages has the number 0 and never
// closes.
type EventLog struct {
	mu      sync.Mutex
	last    int // number of the newest stream
	streams map[int]*stream
	events  []loggedEvent // sorted, the oldest first
	bytes   int
	closed  bool // nothing is kept any more

	client Identity
	budget *Budget
	taken  int // bytes taken from the budget: those beyond Small
}

func (l *EventLog) init(client Identity, budget *Budget) {
	l.streams, l.client, l.budget = map[int]*stream{0: {}}, client, budget
}

// Begin adds the stream of one answer, and returns its reader.
func (l *EventLog) Begin() *Reader {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	answers := &stream{number: l.last}
	l.streams[answers.number] = answers
	return l.attachReader(answers, 0)
}

// Add logs an event of the answer that r reads, and returns it with its id. ours reports whether r
// still reads the stream and must write the event; if another connection reads it, Add wakes that.
// last says that no event follows.
func (l *EventLog) Add(r *Reader, name string, data []byte, last bool) (e Event, ours bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	answers := r.stream
	answers.closed = last
	e = l.logEvent(answers, name, data)
	if answers.reader != nil && answers.reader != r {
		answers.reader.wakeUp()
	}
	return e, answers.reader == r
}

// logMessage logs a message that belongs to no request. Without a reader it drops the oldest
// messages to make room. It reports false if there is a reader that does not read.
func (l *EventLog) logMessage(message []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	general := l.streams[0]
	l.logEvent(general, EventMessage, message)
	if general.reader == nil {
		return true
	}
	general.reader.wakeUp()
	return general.next-general.logged <= general.read
}

func (l *EventLog) logEvent(target *stream, name string, data []byte) Event {
	e := Event{ID: strconv.Itoa(target.number) + "_" + strconv.Itoa(target.next), Name: name, Data: data}
	l.events = append(l.events, loggedEvent{target, target.next, e})
	l.bytes += len(data) + eventOverhead
	target.next++
	target.logged++

	// The oldest events make room; a client that resumes too late cannot have them.
	for len(l.events) > maxEvents || l.bytes > maxEventBytes && len(l.events) > 1 || !l.fitBudget() {
		l.dropOldest()
	}
	return e
}

// fitBudget makes the log hold as much of the budget as its events need. It reports false if the
// budget has too little left.
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

// dropOldest drops the oldest event. It also drops the event's stream if that is closed and has no
// other event.
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
			e.stream.reader.wakeUp()
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

// A Reader is the connection that reads a stream. Another connection may take its place.
type Reader struct {
	Wake     chan struct{} // has a token if there may be events to read
	Replaced chan struct{} // closed when another connection takes the stream

	log    *EventLog
	stream *stream
	next   int // index of the first event that the reader has not read
}

func (r *Reader) wakeUp() {
	select {
	case r.Wake <- struct{}{}:
	default:
	}
}

// attachReader gives a stream another reader, and tells the former one. The caller has the lock.
func (l *EventLog) attachReader(target *stream, next int) *Reader {
	if target.reader != nil {
		close(target.reader.Replaced)
	}
	target.reader = &Reader{
		Wake:     make(chan struct{}, 1),
		Replaced: make(chan struct{}),
		log:      l,
		stream:   target,
		next:     next,
	}
	target.reader.wakeUp()
	return target.reader
}

// Read returns the events that the reader has not read. more is false at the end of an answer, and
// if the log has dropped events of it.
func (r *Reader) Read() (events []Event, more bool) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	source := r.stream
	if source.number > 0 && r.next < source.next-source.logged {
		return nil, false
	}
	for _, e := range r.log.events {
		if e.stream == source && e.index >= r.next {
			events = append(events, e.event)
		}
	}
	r.next, source.read = source.next, source.next
	return events, !source.closed
}

// Close leaves the stream without a reader, unless another one has taken it.
func (r *Reader) Close() {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	if r.stream.reader == r {
		r.stream.reader = nil
	}
}

// Listen returns a reader of the messages that belong to no request; nil if they have a reader.
func (s *Session) Listen() *Reader {
	l := &s.outgoing
	l.mu.Lock()
	defer l.mu.Unlock()
	general := l.streams[0]
	if general.reader != nil {
		return nil
	}
	return l.attachReader(general, general.read)
}

// hasReader reports whether the messages that belong to no request have a reader.
func (s *Session) hasReader() bool {
	s.outgoing.mu.Lock()
	defer s.outgoing.mu.Unlock()
	return s.outgoing.streams[0].reader != nil
}

// Resume returns a reader of the events after the one with this id, in place of the stream's former
// reader. It returns nil if there is no such event, or the log has dropped an event after it.
func (s *Session) Resume(id string) *Reader {
	a, b, ok := strings.Cut(id, "_")
	number, err := strconv.ParseUint(a, 10, 31)
	index, err2 := strconv.ParseUint(b, 10, 31)
	if !ok || err != nil || err2 != nil {
		return nil
	}
	l := &s.Answers
	if number == 0 {
		l = &s.outgoing
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	resumed, next := l.streams[int(number)], int(index)+1
	if resumed == nil || next > resumed.next || next < resumed.next-resumed.logged {
		return nil
	}
	return l.attachReader(resumed, next)
}
