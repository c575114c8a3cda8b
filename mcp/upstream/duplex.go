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

func (d *duplex) ask(ctx context.Context, q *query) outcome {
	q.inbox, q.gone = make(chan incoming, inboxSize), make(chan struct{})
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
		case h := <-q.inbox:
			if h.Method == "" {
				return outcome{incoming: h}
			}
			if h.taken != nil {
				close(h.taken)
			}
			if ctx.Err() == nil {
				d.l.deliver(h.Message, q)
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
		case h := <-q.inbox:
			if h.Method == "" {
				return outcome{incoming: h}
			}
		default:
			return failedWith(d.l.fault())
		}
	}
}

func (d *duplex) tell(ctx context.Context, frame []byte) *fault { return d.send(ctx, frame, nil) }

// receive handles one message of the stream. A fault has ended the link.
func (d *duplex) receive(doc []byte) *fault {
	h, f := d.l.read(doc)
	if f != nil {
		return f
	}
	if h.Method == "" {
		return d.answer(h)
	}

	q := d.owner(h.Message)
	m, pass, f := d.l.filterMessage(h, q)

	switch {
	case f != nil || !pass:
	case q != nil && len(doc) > largeMessage:
		taken := make(chan struct{})
		d.deliver(q, incoming{Message: m, taken: taken})
		select {
		case <-taken:
		case <-q.gone:
		case <-d.l.ctx.Done():
		}
	case q != nil:
		d.deliver(q, incoming{Message: m})
	default:
		d.l.deliver(m, nil)
	}

	return f
}

// answer handles a response. A response to no request, or to a cancelled one, is dropped and counts
// as unsolicited.
func (d *duplex) answer(h incoming) *fault {
	d.mu.Lock()
	q := d.pending[h.id]
	delete(d.pending, h.id)
	d.mu.Unlock()
	if q == nil {
		return d.countUnasked()
	}
	if q.permit != nil && !q.permit.touched.Load() {
		return d.l.fail(CodeProtocol, "it answered a call that had not been sent")
	}
	q.memory.adopt(d.memory)
	d.deliver(q, h)
	return nil
}

// countUnasked counts an unsolicited message.
func (d *duplex) countUnasked() *fault {
	if d.l.countUnasked(d.l.u.limits.Unasked) != nil {
		return d.l.fault()
	}
	return nil
}

func (d *duplex) deliver(q *query, h incoming) {
	select {
	case q.inbox <- h:
	case <-q.gone:
	case <-d.l.ctx.Done():
	}
}

// owner returns our request to which a message belongs: the one that it names, or else the only one
// under way. Subscriptions, and requests of the link itself, get only messages that name them.
func (d *duplex) owner(m wire.Message) *query {
	id := owner(m)
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
