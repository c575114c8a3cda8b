package gateway

import (
	"strconv"
	"strings"
	"sync"
)

// Bounds of what is kept for a client who is not there at the moment.
const (
	maxKept        = 256     // events of a session that can be said again
	maxKeptBytes   = 1 << 20 // of these, in all; one that is larger is not kept
	maxUnread      = 256     // messages that belong to no request and were not read yet
	maxUnreadBytes = 1 << 20 // of these, in all
)

// A standing is what is said to a client outside of its requests: a queue, and whoever reads it.
type standing struct {
	mu     sync.Mutex
	queue  [][]byte
	bytes  int
	share  share // of what is unread in all sessions
	reader *reader
}

// A reader is one connection that hears a stream. Another one may take the stream over.
type reader struct {
	wake chan struct{} // has a token if there may be something new
	gone chan struct{} // closed when another one has taken over
}

func newReader() *reader { return &reader{wake: make(chan struct{}, 1), gone: make(chan struct{})} }

func (r *reader) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// put queues a message. False: it cannot be kept, and somebody listens who should have read.
func (s *standing) put(message []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader == nil && len(message) > maxUnreadBytes {
		return true // too much to keep for who may never come
	}
	for len(s.queue) >= maxUnread || s.bytes+len(message) > maxUnreadBytes && len(s.queue) > 0 || !s.share.holds(s.bytes+len(message)) {
		if s.reader != nil {
			return false
		}
		if len(s.queue) == 0 {
			return true // as above
		}
		s.bytes -= len(s.queue[0])
		s.queue = s.queue[1:]
	}
	s.queue = append(s.queue, message)
	s.bytes += len(message)
	if s.reader != nil {
		s.reader.poke()
	}
	return true
}

// take returns what is queued.
func (s *standing) take() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.queue
	s.queue, s.bytes = nil, 0
	s.share.back()
	return out
}

// end lets go of what is queued, and of what comes.
func (s *standing) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.bytes = nil, 0
	s.share.back()
	s.share.over = true
}

// attach makes somebody the reader. False: there is another one already, and it is not to be taken over.
func (s *standing) attach(over bool) (*reader, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader != nil {
		if !over {
			return nil, false
		}
		close(s.reader.gone)
	}
	s.reader = newReader()
	s.reader.poke()
	return s.reader, true
}

func (s *standing) detach(r *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader == r {
		s.reader = nil
	}
}

func (s *standing) attached() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reader != nil
}

// A trail is one stream of a session as far as its client can take it up again: the one outside of requests, which has the
// number 0, or the answer to one request.
type trail struct {
	number int
	next   int  // the index of the next event
	kept   int  // events that are still there
	over   bool // there will be no next event
	reader *reader
}

// A kept event is one that was said.
type kept struct {
	trail *trail
	index int
	frame []byte
}

// trails are what a session keeps of its streams.
type trails struct {
	mu     sync.Mutex
	last   int
	known  map[int]*trail
	events []kept // the oldest first
	bytes  int
	share  share // of what is kept in all sessions
}

func (t *trails) init() {
	t.known = map[int]*trail{0: {}}
}

// standing is the trail of what belongs to no request.
func (t *trails) standing() *trail {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[0]
}

// begin makes a trail for the answer to a request.
func (t *trails) begin() *trail {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	n := &trail{number: t.last}
	t.known[n.number] = n
	return n
}

// add keeps an event of a trail and returns its frame. Mine says that it is for r to send it; else another one may have taken the
// stream over, and was woken. Over says that it is the last.
func (t *trails) add(on *trail, r *reader, event string, message []byte, over bool) (frame []byte, mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	frame = appendEvent(make([]byte, 0, len(message)+64), event, on.id(on.next), message)
	t.events = append(t.events, kept{on, on.next, frame})
	t.bytes += len(frame)
	on.next++
	on.kept++
	on.over = over
	for len(t.events) > maxKept || t.bytes > maxKeptBytes || !t.share.holds(t.bytes) {
		t.drop()
	}
	if on.reader != nil && on.reader != r {
		on.reader.poke()
	}
	return frame, on.reader == r
}

// end forgets all events.
func (t *trails) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.events) > 0 {
		t.drop()
	}
	t.share.back()
	t.share.over = true
}

// drop forgets the oldest event, and its trail if that was its last.
func (t *trails) drop() {
	e := t.events[0]
	t.events[0] = kept{}
	t.events = t.events[1:]
	t.bytes -= len(e.frame)
	if e.trail.kept--; e.trail.kept == 0 && e.trail.over { // the standing one never is
		delete(t.known, e.trail.number)
		if e.trail.reader != nil {
			e.trail.reader.poke()
		}
	}
}

// attach makes somebody the reader of a trail, in place of whoever is.
func (t *trails) attach(on *trail, r *reader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if on.reader != nil {
		close(on.reader.gone)
	}
	on.reader = r
}

// detach leaves a trail without a reader, if r was it.
func (t *trails) detach(on *trail, r *reader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if on.reader == r {
		on.reader = nil
	}
}

// after returns the frames of a trail from an index on, and whether they are the last. False: some are not kept any more.
func (t *trails) after(on *trail, from int) (frames [][]byte, last, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.events {
		if e.trail == on && e.index >= from {
			frames = append(frames, e.frame)
		}
	}
	return frames, on.over, from+len(frames) == on.next
}

// find returns the trail that an event id is of, and the index of the event behind it. Nil: there is none.
func (t *trails) find(id string) (on *trail, from int) {
	a, b, ok := strings.Cut(id, "_")
	number, err := strconv.ParseUint(a, 10, 31)
	index, err2 := strconv.ParseUint(b, 10, 31)
	if !ok || err != nil || err2 != nil {
		return nil, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if on = t.known[int(number)]; on == nil || int(index) >= on.next {
		return nil, 0
	}
	return on, int(index) + 1
}

// id is the event id of an event of the trail.
func (t *trail) id(index int) string { return strconv.Itoa(t.number) + "_" + strconv.Itoa(index) }
