package front

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// A stdioConnection is the only connection of a client that has started the gateway. It has at most one session, which ends with it.
type stdioConnection struct {
	front    *Front
	from     session.Identity
	ctx      context.Context
	cancel   context.CancelFunc
	session  *session.Session // nil until the client initializes
	requests session.InFlight // requests without a session

	running sync.WaitGroup // requests under way
	closing chan struct{}  // closed by shutdown: ends subscriptions

	mu  sync.Mutex // guards what follows, and each write
	out io.Writer
	err error // first error of out
}

// ServeStdio serves one client with all servers. It reads the client's messages from in, one a line, and writes answers to out. It returns
// when in ends or ctx is done, after the requests under way were answered or their time was over. The error is any other cause of the end.
func (f *Front) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, client session.Identity) error {
	c := &stdioConnection{front: f, from: client, out: out, closing: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer c.shutdown()

	lines := make(chan inputLine)
	go readLines(in, f.table.Limits.BodyBytes, lines, c.ctx.Done())
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.ctx.Done(): // out is broken, or the client does not read it
			return errGone
		case l := <-lines:
			switch {
			case l.err == nil:
				c.acceptLine(l)
			case errors.Is(l.err, io.EOF):
				return nil
			default:
				return l.err
			}
		}
	}
}

// send sends a message to the client. An error ends the connection.
func (c *stdioConnection) send(message []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		if _, c.err = c.out.Write(appendLine(nil, message)); c.err != nil {
			c.cancel()
		}
	}
	return c.err
}

// A requestSender sends messages during one request, and none after its answer.
type requestSender struct {
	connection *stdioConnection
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

// end makes Send fail from now on.
func (s *requestSender) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered = true
}

// shutdown waits for the requests under way for a limited time, and ends the others with the session. It does not wait for a client that
// does not read its answers.
func (c *stdioConnection) shutdown() {
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		c.running.Wait()
	}()
	close(c.closing)
	select {
	case <-idle:
	case <-c.ctx.Done():
	case <-time.After(c.front.timeouts.shutdown):
	}

	c.cancel()
	if c.session != nil {
		c.session.End()
	}
	select {
	case <-idle:
	case <-time.After(c.front.timeouts.shutdown):
	}
}

// accept handles one message. A request is answered later, but initialize, notifications and responses are done when accept returns.
func (c *stdioConnection) accept(m wire.Message) *refusal {
	q := &session.Request{Message: m, From: c.from}
	if refused := c.applyRevision(q); refused != nil {
		return refused
	}
	requests := &c.requests
	if q.Session != nil {
		requests = &q.Session.Requests
	}
	if !m.Request() {
		cancelRequest(q, requests)
		c.front.dispatcher.Dispatch(c.ctx, q)
		return nil
	}

	ctx, finish, refused := c.front.begin(c.ctx, q, requests, c.closing, func() bool { return true })
	if refused != nil {
		return refused
	}
	if q.Method == methodInitialize { // the messages behind it belong to the new session
		c.answer(ctx, q)
		finish()
		return nil
	}
	c.running.Go(func() {
		c.answer(ctx, q)
		finish()
	})
	return nil
}

// answer answers a request. A session that it opened becomes the connection's session.
func (c *stdioConnection) answer(ctx context.Context, q *session.Request) {
	opening := q.Session == nil
	out := &requestSender{connection: c}
	q.Out = out
	message := c.front.dispatcher.Dispatch(ctx, q)
	if message == nil {
		message = noAnswer(q.ID)
	}
	out.end()
	_ = c.send(message) // the connection remembers the error
	if q.Session != nil && opening {
		c.attach(q.Session)
	}
}

// attach makes a new session the connection's session. Each ends with the other.
func (c *stdioConnection) attach(s *session.Session) {
	reader := s.Listen()
	c.session = s
	context.AfterFunc(s.Context, c.cancel)
	context.AfterFunc(c.ctx, s.End)

	go func() {
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
	}()
}

// applyRevision finds the revision in force for a message and applies its rules. It sets the request's session.
func (c *stdioConnection) applyRevision(q *session.Request) *refusal {
	if d := readDeclaration(&q.Message); d.version >= session.Stateless {
		q.Protocol = d.version
		return checkStateless(nil, &q.Message, &d)
	}
	switch {
	case c.session != nil:
		q.Session, q.Protocol = c.session, c.session.Protocol
	case !q.Request(): // the client has never initialized
		q.Protocol = session.Stateless
	}
	return nil
}

// An inputLine is one line of input; err follows the last line.
type inputLine struct {
	text     []byte
	tooLarge *wire.IDFinder // replaces a text over the size limit
	err      error
}

// readLines reads lines until in ends or stop is closed.
func readLines(in io.Reader, limit int, to chan<- inputLine, stop <-chan struct{}) {
	r := bufio.NewReader(in)
	for {
		l := readLine(r, limit)
		if l.err == nil && len(l.text) == 0 && l.tooLarge == nil {
			continue
		}
		select {
		case to <- l:
		case <-stop:
			return
		}
		if l.err != nil {
			return
		}
	}
}

// readLine reads one line without its end. The last line may lack its line feed.
func readLine(r *bufio.Reader, limit int) (l inputLine) {
	for {
		part, err := r.ReadSlice('\n')
		if l.tooLarge == nil && len(l.text)+len(bytes.TrimRight(part, "\r\n")) > limit {
			l.tooLarge = &wire.IDFinder{}
			_, _ = l.tooLarge.Write(l.text) // Write returns no error
			l.text = nil
		}
		if l.tooLarge != nil {
			_, _ = l.tooLarge.Write(part)
		} else {
			l.text = append(l.text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if l.text = bytes.TrimRight(l.text, "\r\n"); err != nil && len(l.text) == 0 && l.tooLarge == nil {
			l.err = err
		}
		return l
	}
}

// acceptLine handles the message of one line and answers it if it is refused.
func (c *stdioConnection) acceptLine(l inputLine) {
	if l.tooLarge != nil {
		c.refuse(tooLarge(c.front.table.Limits.BodyBytes), l.tooLarge.ID())
		return
	}
	m, refused := parseMessage(l.text)
	if refused != nil {
		c.refuse(refused, m.ID)
		return
	}
	if m.Request() { // only a message that gets an answer can be refused
		refused = c.front.limit(c.from, nil)
	}
	if refused == nil {
		refused = c.accept(m)
	}
	if refused != nil && m.ID != nil {
		c.refuse(refused, m.ID)
	}
}

// refuse answers a message that was refused. The id may be nil.
func (c *stdioConnection) refuse(f *refusal, id []byte) {
	_ = c.send(f.body(id)) // the connection remembers the error
}
