package gateway

import (
	"context"
	"sync"
	"sync/atomic"

	"pgfsm/mcp/wire"
)

// A pipe is a client with one connection that all its messages come and go on: a process that started the gateway, or a client of
// revision 2024-11-05 over HTTP. It has at most one session, which ends with it. It is the outlet of its requests.
type pipe struct {
	*Gateway
	from    Identity
	at      *endpoint
	alone   bool      // messages of the stateless revisions may come too
	over    *exchange // that what is said goes out on; nil: the client started the gateway, whose memory is its own
	ctx     context.Context
	cancel  context.CancelFunc
	session atomic.Pointer[session]
	under   underway // requests that have no session

	life    sync.Mutex
	n       int           // requests under way
	ending  chan struct{} // closed by finish
	settled chan struct{} // closed once finish was called and none is under way

	mu    sync.Mutex
	out   func(message []byte) error // one at a time
	ended error                      // of out
}

func (g *Gateway) newPipe(ctx context.Context, from Identity, at *endpoint, out func([]byte) error) *pipe {
	p := &pipe{Gateway: g, from: from, at: at, out: out, ending: make(chan struct{}), settled: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(ctx)
	return p
}

// Send says something to the client.
func (p *pipe) Send(message []byte) error {
	defer p.over.waits(message).end() // also while others are written
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended == nil {
		if p.ended = p.out(message); p.ended != nil {
			p.cancel()
		}
	}
	return p.ended
}

// close ends the pipe with its session and all that is under way. When it returns, nothing is written any more.
func (p *pipe) close() {
	p.cancel()
	if s := p.session.Load(); s != nil {
		s.end()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended == nil {
		p.ended = errGone
	}
}

// finish takes no more requests and ends those that would never end by themselves. What it returns is closed when none is under way.
func (p *pipe) finish() <-chan struct{} {
	p.life.Lock()
	defer p.life.Unlock()
	close(p.ending)
	if p.n == 0 {
		close(p.settled)
	}
	return p.settled
}

func (p *pipe) finishing() bool {
	select {
	case <-p.ending:
		return true
	default:
		return false
	}
}

// enter notes a request under way, which leave takes back.
func (p *pipe) enter(under *underway, id string, cancel context.CancelFunc) error {
	if err := p.busy.enter(p.from); err != nil {
		return err
	}
	p.life.Lock()
	defer p.life.Unlock()
	err := errDraining
	if !p.finishing() {
		err = under.enter(id, p.options.Limits.RequestsPerSession, cancel)
	}
	if err != nil {
		p.busy.leave(p.from)
		return err
	}
	p.n++
	return nil
}

func (p *pipe) leave(under *underway, id string) {
	p.life.Lock()
	defer p.life.Unlock()
	under.leave(id)
	p.busy.leave(p.from)
	if p.n--; p.n == 0 && p.finishing() {
		close(p.settled)
	}
}

// take takes one message. What is refused has no other answer; initialize and what wants no answer are done with when it returns.
// Done is called when nothing of the message is needed any more.
func (p *pipe) take(m wire.Message, done func()) *refusal {
	ours := true
	defer func() {
		if ours {
			done()
		}
	}()
	q := &request{Message: m, gateway: p.Gateway, from: p.from, at: p.at, out: p}
	if f := p.era(q); f != nil {
		return f
	}
	if !m.Request() {
		if m.Method == methodCancelled && q.session == nil {
			p.under.cancel(string(wire.Member(m.Params, "requestId")))
		}
		p.decide(p.ctx, q)
		return nil
	}
	ctx, cancel := context.WithCancel(p.ctx)
	under := &p.under
	if q.session != nil {
		under = &q.session.requests
	}
	if err := p.enter(under, string(m.ID), cancel); err != nil {
		cancel()
		return refusalOf(err)
	}
	serve := func() {
		defer p.leave(under, string(m.ID))
		defer cancel()
		p.serve(ctx, q)
	}
	if q.Method == methodInitialize {
		serve() // what comes behind it is of the session that it opens
		return nil
	}
	ours = false
	go func() {
		defer done()
		serve()
	}()
	return nil
}

// serve answers a request.
func (p *pipe) serve(ctx context.Context, q *request) {
	if q.Method == methodListen {
		var cancel context.CancelFunc
		ctx, cancel = p.untilDraining(ctx, p.ending)
		defer cancel()
	}
	had := q.session
	message := p.decide(ctx, q)
	if message == nil { // a request is always answered
		message = wire.Failure(nil, q.ID, wire.ErrorObject(wire.InternalError, "there is no answer", nil))
	}
	_ = p.Send(message) // the pipe remembers that the client is gone
	if s := q.session; s != nil && had == nil {
		p.adopt(s)
	}
}

// adopt makes a session that was just opened the pipe's. Either ends with the other.
func (p *pipe) adopt(s *session) {
	s.piped.Store(true)
	hear, _ := s.outside.attach(true)
	p.session.Store(s)
	context.AfterFunc(s.ctx, p.cancel)
	context.AfterFunc(p.ctx, s.end)
	go func() {
		for {
			select {
			case <-s.ctx.Done():
				return
			case <-hear.wake:
				for _, message := range s.outside.take() {
					if p.Send(message) != nil {
						return
					}
				}
			}
		}
	}()
}

// era says which revision is in force for a message.
func (p *pipe) era(q *request) *refusal {
	if p.alone {
		if c := claimOf(&q.Message); c.version >= Stateless {
			q.protocol = c.version
			return standsAlone(nil, &q.Message, &c)
		}
	}
	if s := p.session.Load(); s != nil {
		q.session, q.protocol = s, s.protocol
		return nil
	}
	if p.alone && !q.Request() { // of a client that never began a session
		q.protocol = Stateless
	}
	return nil
}
