package upstream

import (
	"context"
	"sync"

	"pgfsm/mcp/wire"
)

// inboxSize bounds the messages of the server that wait for the goroutine of one request. If the
// inbox is full, the reader waits, and so does the server. A message of more than largeMessage
// bytes waits alone, which bounds the waiting messages in bytes too.
const (
	inboxSize    = 64
	largeMessage = 64 << 10
)

// A duplex is the common part of stdio and SSE: all messages of the server arrive on one stream,
// which one goroutine reads.
type duplex struct {
	l *Link
	// send sends a message, with the permit if it is a tools/call.
	send func(ctx context.Context, frame []byte, p *permit) *fault

	memory *Memory // reserved for the message that is being read

	mu      sync.Mutex
	pending map[int64]*query // our requests without an answer yet
}

func newDuplex(l *Link) duplex { return duplex{l: l, pending: make(map[int64]*query)} }

// roundTrip sends a request, and passes on the messages that belong to it until the answer arrives.
func (d *duplex) roundTrip(ctx context.Context, q *query) outcome {
	q.inbox, q.gone = make(chan incoming, inboxSize), make(chan struct{})

	// The request is registered before it is sent, because the answer may arrive at once.
	d.mu.Lock()
	d.pending[q.id] = q
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.pending, q.id)
		d.mu.Unlock()
		close(q.gone)
	}()

	if f := d.send(ctx, q.frame, q.permit); f != nil {
		return failedWith(f)
	}

	for {
		select {
		case msg := <-q.inbox:
			if msg.Method == "" {
				return outcome{incoming: msg}
			}
			if msg.taken != nil {
				close(msg.taken)
			}
			if ctx.Err() == nil {
				d.l.deliverMessage(msg.Message, q)
			}
		case <-ctx.Done():
			return failedWith(&fault{code: contextCode(ctx), reason: errNoAnswer})
		case <-d.l.ctx.Done():
			return d.lastAnswer(q)
		}
	}
}

// lastAnswer returns the outcome of a request after the link has ended: its answer may have arrived
// right before.
func (d *duplex) lastAnswer(q *query) outcome {
	for {
		select {
		case msg := <-q.inbox:
			if msg.Method == "" {
				return outcome{incoming: msg}
			}
		default:
			return failedWith(d.l.fault())
		}
	}
}

func (d *duplex) sendMessage(ctx context.Context, frame []byte) *fault {
	return d.send(ctx, frame, nil)
}

// receiveMessage handles one message of the stream. A fault has ended the link.
func (d *duplex) receiveMessage(doc []byte) *fault {
	msg, f := d.l.readMessage(doc)
	if f != nil {
		return f
	}
	if msg.Method == "" {
		return d.receiveAnswer(msg)
	}

	q := d.queryOf(msg.Message)
	m, pass, f := d.l.filterMessage(msg, q)

	switch {
	case f != nil || !pass:
	case q != nil && len(doc) > largeMessage:
		// The reader waits until the query has taken the message.
		waiting := make(chan struct{})
		d.passToQuery(q, incoming{Message: m, taken: waiting})
		select {
		case <-waiting:
		case <-q.gone:
		case <-d.l.ctx.Done():
		}
	case q != nil:
		d.passToQuery(q, incoming{Message: m})
	default:
		d.l.deliverMessage(m, nil)
	}

	return f
}

// receiveAnswer handles a response. A response to no request, or to a cancelled one, is dropped and
// counts as unsolicited.
func (d *duplex) receiveAnswer(msg incoming) *fault {
	d.mu.Lock()
	q := d.pending[msg.id]
	delete(d.pending, msg.id)
	d.mu.Unlock()
	if q == nil {
		return d.l.countUnasked()
	}
	if q.permit != nil && !q.permit.touched.Load() {
		return d.l.fail(CodeProtocol, "it answered a call that had not been sent")
	}
	q.memory.adopt(d.memory)
	d.passToQuery(q, msg)
	return nil
}

func (d *duplex) passToQuery(q *query, msg incoming) {
	select {
	case q.inbox <- msg:
	case <-q.gone:
	case <-d.l.ctx.Done():
	}
}

// queryOf returns our request to which a message belongs: the one that it names, or else the only
// one under way. Subscriptions, and requests of the link itself, get only messages that name them.
func (d *duplex) queryOf(m wire.Message) *query {
	id := requestIDOf(m)
	d.mu.Lock()
	defer d.mu.Unlock()
	if id != 0 || m.Method == noteProgress {
		return d.pending[id]
	}
	var candidate *query
	for _, q := range d.pending { // in any order: only a single candidate is used
		switch {
		case q.method == methodListen:
		case candidate != nil || q.on == nil:
			return nil
		default:
			candidate = q
		}
	}
	return candidate
}
