package session

import "sync"

// Bounds of the messages of one session that belong to no request and were not read yet.
const (
	maxQueued      = 256
	maxQueuedBytes = 1 << 20
)

// A Queue holds the messages for a session's client that belong to none of its requests, until the client's connection reads them.
type Queue struct {
	mu       sync.Mutex
	messages [][]byte
	bytes    int
	held     reservation
	reader   *Reader
}

// A Reader is the connection that reads a [Queue] or a stream of an [EventLog]. Another connection may take its place.
type Reader struct {
	Wake     chan struct{} // has a token if there may be something to read
	Replaced chan struct{} // closed when another connection reads instead
}

// NewReader returns a reader that is attached to nothing.
func NewReader() *Reader {
	return &Reader{Wake: make(chan struct{}, 1), Replaced: make(chan struct{})}
}

func (r *Reader) wake() {
	select {
	case r.Wake <- struct{}{}:
	default:
	}
}

// Put queues a message. Without a reader the oldest messages make room, and a message too large to be kept is dropped. Put reports false
// if there is a reader and no room.
func (q *Queue) Put(message []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.reader == nil && len(message) > maxQueuedBytes {
		return true
	}
	for len(q.messages) >= maxQueued || q.bytes+len(message) > maxQueuedBytes && len(q.messages) > 0 || !q.held.grow(q.bytes+len(message)) {
		if q.reader != nil {
			return false
		}
		if len(q.messages) == 0 {
			return true
		}
		q.bytes -= len(q.messages[0])
		q.messages = q.messages[1:]
	}
	q.messages = append(q.messages, message)
	q.bytes += len(message)
	if q.reader != nil {
		q.reader.wake()
	}
	return true
}

// Take removes and returns all messages.
func (q *Queue) Take() [][]byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.messages
	q.messages, q.bytes = nil, 0
	q.held.release()
	return all
}

// close drops the messages, and large ones that are put later.
func (q *Queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.messages, q.bytes = nil, 0
	q.held.release()
	q.held.closed = true
}

// Attach makes a new reader. It reports false if there is a reader already and replace is false.
func (q *Queue) Attach(replace bool) (*Reader, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.reader != nil {
		if !replace {
			return nil, false
		}
		close(q.reader.Replaced)
	}
	q.reader = NewReader()
	q.reader.wake()
	return q.reader, true
}

// Detach leaves the queue without a reader if r is its reader.
func (q *Queue) Detach(r *Reader) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.reader == r {
		q.reader = nil
	}
}

// Attached reports whether there is a reader.
func (q *Queue) Attached() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reader != nil
}
