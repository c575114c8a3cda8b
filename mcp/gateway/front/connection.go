package front

import (
	"context"
	"sync"
	"sync/atomic"

	"pgfsm/mcp/gateway/session"
)

// A connection is the only connection of a client: standard input and output, or the transport of
// revision 2024-11-05. It has at most one session, which ends with it.
type connection struct {
	front     *Front
	from      session.Identity
	endpoint  string    // the server's name; empty: all servers
	stateless bool      // messages of the stateless revision are accepted, too
	exchange  *exchange // whose budget of memory counts what waits to be written; nil: none does
	ctx       context.Context
	cancel    context.CancelFunc
	session   atomic.Pointer[session.Session] // nil until the client initializes
	requests  session.InFlight                // requests without a session

	mu    sync.Mutex // guards what follows, and each write
	write func(message []byte) error
	err   error // first error of write
}

func newConnection(ctx context.Context, f *Front, from session.Identity, write func([]byte) error) *connection {
	c := &connection{front: f, from: from, write: write}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// send sends a message to the client. An error ends the connection.
func (c *connection) send(message []byte) error {
	if c.exchange != nil {
		defer c.exchange.reserveWrite(message)() // also while another message is written
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if c.err = c.write(message); c.err != nil {
		c.cancel()
	}
	return c.err
}

// A requestSender sends messages during one request, and none after its answer.
type requestSender struct {
	connection *connection
	mu         sync.Mutex
	answered   bool
}

// Send sends a message.
func (s *requestSender) Send(message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answered {
		return errGone
	}
	return s.connection.send(message)
}

// stopSending makes Send fail from now on.
func (s *requestSender) stopSending() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered = true
}

// handleMessage handles one message. A request is answered later, but initialize, notifications and
// responses are done when accept returns. accept calls done when nothing needs the message any
// more.
func (c *connection) handleMessage(q *session.Request, done func()) *refusal {
	q.From, q.Endpoint = c.from, c.endpoint
	if refused := c.applyRevision(q); refused != nil {
		done()
		return refused
	}

	requests := &c.requests
	if q.Session != nil {
		requests = &q.Session.Requests
	}

	if !q.Request() {
		defer done()
		cancelRequest(q, requests)
		c.front.dispatcher.Dispatch(c.ctx, q)
		return nil
	}

	ctx, finish, refused := c.front.beginRequest(c.ctx, q, requests, func() bool { return true })
	if refused != nil {
		done()
		return refused
	}

	serve := func() {
		defer done()
		defer finish()
		c.answerRequest(ctx, q)
	}

	if q.Method == methodInitialize { // the messages behind it belong to the new session
		serve()
	} else {
		go serve()
	}

	return nil
}

// answerRequest answers a request. A session that it opened becomes the connection's session.
func (c *connection) answerRequest(ctx context.Context, q *session.Request) {
	opening := q.Session == nil
	out := &requestSender{connection: c}
	q.Out = out
	message := c.front.dispatcher.Dispatch(ctx, q)
	if message == nil {
		message = noAnswer(q.ID)
	}
	out.stopSending()

	opened := opening && q.Session != nil
	if opened { // before the answer: the client's next message may come at once
		c.attachSession(q.Session)
	}
	_ = c.send(message) // the connection remembers the error
	if opened {
		go c.sendEvents(q.Session, q.Session.Listen())
	}
}

// attachSession makes a new session the connection's session. Each ends with the other.
func (c *connection) attachSession(s *session.Session) {
	c.session.Store(s)
	context.AfterFunc(s.Context, c.cancel)
	context.AfterFunc(c.ctx, s.End)
}

// sendEvents sends the messages that belong to no request of the session.
func (c *connection) sendEvents(s *session.Session, reader *session.Reader) {
	for {
		select {
		case <-s.Context.Done():
			return
		case <-reader.Wake:
			events, _ := reader.Read()
			for _, e := range events {
				if c.send(e.Data) != nil {
					return
				}
			}
		}
	}
}

// applyRevision finds the revision in force for a message and applies its rules. It sets the
// request's session.
func (c *connection) applyRevision(q *session.Request) *refusal {
	if c.stateless {
		if d := readDeclaration(&q.Message); d.version >= session.Stateless {
			q.Protocol = d.version
			return checkStateless(nil, &q.Message, &d)
		}
	}
	switch s := c.session.Load(); {
	case s != nil:
		q.Session, q.Protocol = s, s.Protocol
	case c.stateless && !q.Request(): // the client has never initialized
		q.Protocol = session.Stateless
	}
	return nil
}
