package upstream

import (
	"context"
	"strconv"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/mcp/wire"
)

// noteProgress reports progress; tokenMember is the member of params that names the request.
const (
	noteProgress = "notifications/progress"
	tokenMember  = "progressToken"
)

func failedWith(f *fault) outcome { return outcome{fault: f, status: f.status} }

// filterMessage reads a request or notification of the server that arrived with q, or with no
// request. pass reports whether the query or the peer gets it. A fault has ended the link.
func (l *Link) filterMessage(msg incoming, q *query) (m wire.Message, pass bool, f *fault) {
	if f := l.countUnasked(); f != nil {
		return m, false, f
	}

	switch {
	case msg.Method == noteToolsChanged:
		l.invalidateListings()
	case msg.Method == noteCancelled && msg.ID == nil && !msg.unfit:
		l.requests.withdraw(wire.Member(msg.Params, "requestId"))
	}

	switch {
	case msg.ID == nil && (msg.unfit || msg.Method == noteProgress && !restoreToken(&msg.Message, q)):
		return m, false, nil
	case msg.ID == nil && msg.Method == noteAcknowledged && (q == nil || q.method != methodListen):
		return m, false, nil // meant for the link's own subscription
	case msg.ID == nil:
		return msg.Message, true, nil
	case msg.unfit:
		return m, false, nil
	}

	switch {
	case msg.Method == methodPing:
		f = l.enqueueMessage(wire.Response(nil, msg.ID, []byte("{}")))
	case l.peer.OnMessage == nil && (q == nil || q.on == nil):
		f = l.enqueueMessage(wire.Failure(nil, msg.ID,
			wire.ErrorObject(wire.MethodNotFound, "it is not supported", nil)))
	case !l.requests.register(msg.ID, q):
		f = l.fail(CodeProtocol, "it has more than %d requests that wait for an answer, or two with one id", maxOwed)
	default:
		return msg.Message, true, nil
	}

	return m, false, f
}

// deliverMessage delivers a message to the query, in the query's goroutine, or to the peer if there
// is no query.
func (l *Link) deliverMessage(m wire.Message, q *query) {
	switch {
	case q != nil && q.on != nil:
		q.on(m)
	case l.peer.OnMessage != nil:
		l.peer.OnMessage(m)
	}
	if m.ID != nil {
		l.requests.pauseClocks(m.ID)
	}
}

// handleMessage filters a message and delivers it, unless ctx has ended: many messages may wait
// then, and the receiver may block.
func (l *Link) handleMessage(ctx context.Context, msg incoming, q *query) *fault {
	m, pass, f := l.filterMessage(msg, q)
	if pass && ctx.Err() == nil {
		l.deliverMessage(m, q)
	}
	return f
}

// restoreToken restarts the timeout of q and puts the caller's own token
// back. It reports false for progress that the caller did not ask for.
func restoreToken(m *wire.Message, q *query) bool {
	if q == nil || !q.asked || string(wire.Member(m.Params, tokenMember)) != strconv.FormatInt(q.id, 10) ||
		wire.Member(m.Params, "progress").Kind() != '0' {
		return false
	}
	if q.clock != nil {
		q.clock.Progress()
	}
	if q.token == nil {
		return false
	}
	params, err := wire.Set(m.Params, tokenMember, q.token)
	if err != nil {
		return false
	}
	m.Params, m.Members = params, nil
	return true
}

// requestIDOf returns the id of our request that a notification names, by its progress token or its
// subscription; 0 if it names none.
func requestIDOf(m wire.Message) int64 {
	if m.ID != nil {
		return 0
	}
	name := wire.Member(m.Params, tokenMember)
	if m.Method != noteProgress {
		name = wire.Member(wire.Member(m.Params, "_meta"), sdk.MetaKeySubscriptionID)
	}
	id, err := plainID(name)
	if err != nil {
		return 0
	}
	return id
}

// enqueueMessage queues a message to the server, so that the reading goroutine never blocks on
// writing. Messages leave in order.
func (l *Link) enqueueMessage(frame []byte) *fault {
	o := &l.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.frames) >= maxOwed {
		return l.fail(CodeProtocol, "it has more than %d requests that it takes no answer to", maxOwed)
	}
	o.frames = append(o.frames, frame)
	if o.idle == nil && l.tasks.run(l.sendQueued) {
		o.idle = make(chan struct{})
	}
	return nil
}

// flushOutbox waits until the queued messages are sent, for at most closeGrace.
func (l *Link) flushOutbox() {
	l.outbox.mu.Lock()
	idle := l.outbox.idle
	l.outbox.mu.Unlock()
	if idle != nil {
		waitFor(idle, closeGrace)
	}
}

// An outbox holds messages that wait to be sent.
type outbox struct {
	mu     sync.Mutex
	frames [][]byte
	idle   chan struct{} // closed when all are sent; nil: none is being sent
}

// sendQueued sends the messages of the outbox.
func (l *Link) sendQueued() {
	o := &l.outbox
	for {
		o.mu.Lock()
		if len(o.frames) == 0 || l.ctx.Err() != nil {
			close(o.idle)
			o.frames, o.idle = nil, nil
			o.mu.Unlock()
			return
		}
		frame := o.frames[0]
		o.frames = o.frames[1:]
		o.mu.Unlock()
		ctx, cancel := context.WithTimeout(l.ctx, l.up.server.ConnectTimeout)
		// A fault that ends the link is remembered there; others concern only this message.
		_ = l.conn.sendMessage(ctx, frame)
		cancel()
	}
}
