package front

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

// A connection is the only connection of a client: standard input and output, or a channel of revision 2024-11-05. It has at most one
// session, which ends with it. It sends the messages that belong to its requests.
type connection struct {
	front     *Front
	from      session.Identity
	endpoint  string
	stateless bool      // messages of the stateless revision are accepted, too
	exchange  *exchange // the exchange that writes; nil: standard output, whose memory counts in no budget
	ctx       context.Context
	cancel    context.CancelFunc
	session   atomic.Pointer[session.Session]
	requests  session.InFlight // requests without a session

	running sync.WaitGroup // requests under way
	closing chan struct{}  // closed by shutdown: ends subscriptions

	mu  sync.Mutex
	out func(message []byte) error // called for one message at a time
	err error                      // first error of out
}

func (f *Front) newConnection(ctx context.Context, from session.Identity, endpoint string, out func([]byte) error) *connection {
	c := &connection{
		front:    f,
		from:     from,
		endpoint: endpoint,
		out:      out,
		closing:  make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// Send sends a message to the client. An error ends the connection.
func (c *connection) Send(message []byte) error {
	defer c.exchange.reserveWrite(message)() // held while another message is written, too
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		if c.err = c.out(message); c.err != nil {
			c.cancel()
		}
	}
	return c.err
}

// close ends the connection with its session and all requests. When it returns, nothing more is written.
func (c *connection) close() {
	c.cancel()
	if s := c.session.Load(); s != nil {
		s.End()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = errGone
	}
}

// requestsOf returns the set of requests to which q belongs.
func (c *connection) requestsOf(q *session.Request) *session.InFlight {
	if q.Session != nil {
		return &q.Session.Requests
	}
	return &c.requests
}

// accept handles one message with its HTTP headers and the identity provider's claims about the client. A request is answered later, but
// initialize, notifications and responses are done when accept returns. accept calls done when nothing of the message is needed any more.
func (c *connection) accept(m wire.Message, header http.Header, identity *policy.Identity, done func()) *refusal {
	q := &session.Request{
		Message:  m,
		From:     c.from,
		Identity: identity,
		Endpoint: c.endpoint,
		HTTP:     header,
		Out:      c,
	}
	if refused := c.applyRevision(q); refused != nil {
		done()
		return refused
	}
	if !m.Request() {
		defer done()
		cancelRequest(q, c.requestsOf(q))
		c.front.dispatcher.Dispatch(c.ctx, q)
		return nil
	}

	ctx, finish, refused := c.front.begin(c.ctx, q, c.requestsOf(q), c.closing, func() bool { return true })
	if refused != nil {
		done()
		return refused
	}
	c.running.Add(1)
	serve := func() {
		defer c.running.Done()
		defer done()
		defer finish()
		c.serve(ctx, q)
	}
	if q.Method == methodInitialize { // the messages behind it belong to the new session
		serve()
	} else {
		go serve()
	}
	return nil
}

// serve answers a request.
func (c *connection) serve(ctx context.Context, q *session.Request) {
	opening := q.Session == nil
	message := c.front.dispatcher.Dispatch(ctx, q)
	if message == nil {
		message = noAnswer(q.ID)
	}
	_ = c.Send(message) // the connection remembers the error
	if q.Session != nil && opening {
		c.attach(q.Session)
	}
}

// attach makes a new session the connection's session. Each ends with the other.
func (c *connection) attach(s *session.Session) {
	reader := s.Attach()
	c.session.Store(s)
	context.AfterFunc(s.Context, c.cancel)
	context.AfterFunc(c.ctx, s.End)

	go func() {
		for {
			select {
			case <-s.Context.Done():
				return
			case <-reader.Wake:
				for _, e := range s.Outgoing.Unread(s.Outgoing.General()) {
					if c.Send(e.Data) != nil {
						return
					}
				}
			}
		}
	}()
}

// applyRevision finds the revision in force for a message and applies its rules. It sets the request's session.
func (c *connection) applyRevision(q *session.Request) *refusal {
	if c.stateless {
		if d := readDeclaration(&q.Message); d.version >= session.Stateless {
			q.Protocol = d.version
			return checkStateless(nil, &q.Message, &d)
		}
	}
	if s := c.session.Load(); s != nil {
		q.Session, q.Protocol = s, s.Protocol
		return nil
	}
	if c.stateless && !q.Request() { // the client has never initialized
		q.Protocol = session.Stateless
	}
	return nil
}
