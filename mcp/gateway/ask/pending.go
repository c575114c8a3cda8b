package ask

import (
	"context"
	"crypto/sha256"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// Bounds of the questions of one pending request.
const (
	MaxQuestionBytes = 4 << 20 // of open questions; one message of a server may be larger
	MaxCancelled     = 64      // ids that the server cancelled before their questions arrived

	// CollectTime is how long the gateway waits for more questions after the first, before it asks the client.
	CollectTime = 50 * time.Millisecond
)

// A Pending is a request of a stateless client to a server with sessions that may ask the client something before it answers. The client is
// asked in a result, and repeats its request with the answers. Meanwhile the request goes on at the server.
type Pending struct {
	relay    *Relay
	client   session.Identity
	server   string
	target   string            // the tool, or the method
	digest   [sha256.Size]byte // of what the repeated request must have in common with the first
	declared Capabilities      // by the first request; the server was told no others
	out      *session.RequestSender
	work     Work
	ctx      context.Context // of the work
	cancel   context.CancelFunc
	finished chan struct{} // closed when the work is done
	added    chan struct{} // has a token if there is a new question
	attended atomic.Bool   // a request of the client waits for the work; changed with the lock only, which a client may hold that does not read
	waited   atomic.Bool   // for a link of its own

	mu             sync.Mutex
	id             string // of the request state; empty: the client was asked nothing
	size           int    // of the request and of an answer that waits, if they are large
	current        Capabilities
	questions      []question
	bytes          int      // of the questions, and of those that are being added
	last           int      // number of the newest question
	cancelled      []string // ids that the server cancelled before their questions arrived
	clientAnswered bool     // the server has learned something from the client
	closed         bool     // no more questions are accepted
	timer          *time.Timer
}

// A question is a request of the server to the client.
type question struct {
	name   string // the client's
	id     jsontext.Value
	server Server
	method string
	params jsontext.Value
	size   int // as the server sent it
}

// Work is what goes on at the server.
type Work interface {
	// Run does the work. Its context ends when the client cancels its request.
	Run(context.Context)
	// Size is how many bytes the outcome of Run has.
	Size() int
	// Fail sets the outcome after a panic of Run.
	Fail()
	// Respond answers a request of the client with the outcome of Run.
	Respond(*session.Request) []byte
}

// A Caller is a request of a stateless client, and what it declares.
type Caller struct {
	*session.Request
	Capabilities Capabilities
	Out          session.Sender // filters what the request wants to be sent; nil: nothing
}

// NewPending returns a pending request for work that c began. What is sent to the client during the work goes to out.
func (r *Relay) NewPending(c Caller, server, target string, out *session.RequestSender, w Work) *Pending {
	p := &Pending{
		relay: r, client: c.From, server: server, target: target, digest: requestDigest(c.Request), declared: c.Capabilities, current: c.Capabilities,
		out: out, work: w, finished: make(chan struct{}), added: make(chan struct{}, 1),
	}
	p.attended.Store(true)
	if len(c.Params) > session.Small {
		p.size = len(c.Params)
	}
	return p
}

// requestDigest is the digest of the method and of those params that a client repeats unchanged.
func requestDigest(q *session.Request) [sha256.Size]byte {
	var b wire.Object
	wire.Each(q.Params, func(p wire.Piece) {
		switch p.Name {
		case "_meta", "inputResponses", "requestState":
		default:
			b.Add(p.Name, p.Value)
		}
	})
	params, err := canonical.JSON(b.Done())
	if err != nil { // package wire has read it strictly
		params = b.Done()
	}
	return sha256.Sum256(slices.Concat([]byte(q.Method+"\n"), params))
}

type pendingKey struct{}

// PendingOf returns the pending request whose work has a context; nil if it has none.
func PendingOf(ctx context.Context) *Pending {
	p, _ := ctx.Value(pendingKey{}).(*Pending)
	return p
}

// Start starts the work, and returns the result that asks the client something, or the message that answers c.
func (p *Pending) Start(ctx context.Context, c Caller) (asks jsontext.Value, answer []byte) {
	p.ctx, p.cancel = context.WithCancel(context.WithValue(context.WithoutCancel(ctx), pendingKey{}, p))
	stop := func() bool { return true }
	if c.Client != nil {
		stop = context.AfterFunc(c.Client, p.cancel)
	}
	go func() {
		defer stop()
		defer p.cancel()
		p.run()
		_, _ = p.Close()
		close(p.finished)
		p.relay.pending.keep(p)
	}()
	return p.wait(ctx, c)
}

// run runs the work. A panic costs the client its answer, as it does in a handler of net/http.
func (p *Pending) run() {
	defer func() {
		if recover() != nil {
			p.relay.Log.Error("a request ended with a panic", "server", p.server, "stack", string(debug.Stack()))
			p.work.Fail()
		}
	}()
	p.work.Run(p.ctx)
}

// wait waits for the outcome or for questions. If the connection is lost, it cancels the work, like that of any stateless request.
func (p *Pending) wait(ctx context.Context, c Caller) (asks jsontext.Value, answer []byte) {
	gone := ctx.Done()
	var collected <-chan time.Time // nil: there is no question
	for {
		if collected == nil && p.hasQuestions() {
			collected = time.After(CollectTime)
		}
		select {
		case <-p.finished:
			p.relay.pending.remove(p)
			return nil, p.work.Respond(c.Request)
		case <-p.added:
		case <-collected:
			collected = nil
			asks, refused := p.ask()
			answering, cancel := answerContext(ctx)
			for _, x := range refused {
				p.answerServer(answering, x, nil, NotOffered)
			}
			cancel()
			if asks != nil {
				return asks, nil
			}
		case <-gone:
			p.cancel()
			gone = nil
		}
	}
}

func (p *Pending) hasQuestions() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.questions) > 0 && p.ctx.Err() == nil
}

// ask returns the result that asks the client all questions; nil if there is none, or the work is over. Refused are the questions that the
// client's current request does not allow. After a result, no request of the client attends.
func (p *Pending) ask() (asks jsontext.Value, refused []question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done() || p.ctx.Err() != nil {
		return nil, nil
	}
	if refused = p.dropUnanswerable(); len(p.questions) == 0 {
		return nil, refused
	}
	var all wire.Object
	for _, x := range p.questions {
		all.Add(x.name, NewQuestion(x.method, x.params))
	}
	p.attended.Store(false)
	p.out.Redirect(nil)
	return InputRequired(all.Done(), p.relay.States.Seal(StatePending, p.id, p.client, p.server, p.target)), refused
}

// dropUnanswerable removes the questions for which the client's current request does not declare the capability. The caller has the lock.
func (p *Pending) dropUnanswerable() (dropped []question) {
	if p.current == p.declared { // under which all were accepted
		return nil
	}
	var left []question
	for _, x := range p.questions {
		if p.current.Lacks(x.method, x.params) == "" {
			left = append(left, x)
			continue
		}
		dropped, p.clientAnswered = append(dropped, x), true
		p.releaseQuestion(x.size)
	}
	p.questions = left
	return dropped
}

// answerServer answers a question, unless its link belongs to another request by now. A server that cannot be told has lost its link.
func (p *Pending) answerServer(ctx context.Context, x question, result, failed jsontext.Value) {
	if x.server.Serves(p) {
		_ = x.server.Answer(ctx, x.id, result, failed)
	}
}

// answerContext is for telling a server something, also when the request has ended.
func answerContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), AnswerTimeout)
}

// Done is closed when the work is done.
func (p *Pending) Done() <-chan struct{} { return p.finished }

func (p *Pending) done() bool {
	select {
	case <-p.finished:
		return true
	default:
		return false
	}
}

// Unattended reports whether the work goes on and no request of the client waits for it.
func (p *Pending) Unattended() bool { return !p.attended.Load() && !p.done() }

// Cancelled reports whether nobody waits for the work any more.
func (p *Pending) Cancelled() bool { return p.ctx.Err() != nil }

// WaitOnce reports whether the work may wait for a link of its own: it may once.
func (p *Pending) WaitOnce() bool { return !p.waited.Swap(true) }

// Declared are the capabilities of the request that began the work.
func (p *Pending) Declared() Capabilities { return p.declared }

// Ask accepts a question of the server. The error object says why the client is not asked.
func (p *Pending) Ask(ctx context.Context, server Server, m wire.Message) (failed jsontext.Value) {
	if p.relay.Table.Requests.Stopped() {
		return wire.ErrorObject(wire.InternalError, "the client cannot come back: the gateway is stopping", nil)
	}
	size := len(m.Params)
	if failed, ok := p.reserveQuestion(m, size); !ok { // before the question is recorded
		return failed
	}
	defer func() {
		if failed != nil {
			p.mu.Lock()
			p.releaseQuestion(size)
			p.mu.Unlock()
		}
	}()
	params := wire.StripMeta(m.Params)
	withoutToken := wire.StripProgressToken(params) // a result has no progress
	if params != nil && wire.CheckObject(withoutToken) != nil {
		return wire.ErrorObject(wire.InvalidParams, "its params cannot be read", nil)
	}
	if p.relay.Record(ctx, p.client, p.server, ToClient, m.Method, params) != nil {
		return NotRecorded
	}
	if withoutToken != nil {
		withoutToken = p.relay.Mask(withoutToken)
	}
	return p.add(question{id: m.ID, server: server, method: m.Method, params: withoutToken, size: size})
}

// add adds a question whose memory is reserved.
func (p *Pending) add(x question) (failed jsontext.Value) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed || len(p.questions) >= MaxQuestions:
		return TooManyQuestions
	case p.takeCancelled(x.id): // meanwhile
		p.releaseQuestion(x.size)
		return nil
	}
	p.last++
	x.name, x.id, x.params = "q"+strconv.Itoa(p.last), x.id.Clone(), x.params.Clone()
	p.questions = append(p.questions, x)
	select {
	case p.added <- struct{}{}:
	default:
	}
	return nil
}

// reserveQuestion reserves the memory of a question. If it reports false, the client is not asked, and the error object, if there is one, says why.
func (p *Pending) reserveQuestion(m wire.Message, size int) (failed jsontext.Value, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.takeCancelled(m.ID):
		return nil, false
	case p.current != p.declared && p.current.Lacks(m.Method, m.Params) != "":
		return NotOffered, false
	case p.closed || len(p.questions) >= MaxQuestions || size > MaxQuestionBytes-p.bytes || !p.relay.addPending(p) ||
		!p.relay.Table.Bodies.Take(p.client, size):
		return TooManyQuestions, false
	}
	p.bytes += size
	return nil, true
}

// releaseQuestion gives the memory of a question back, unless all of it was given back. The caller has the lock.
func (p *Pending) releaseQuestion(size int) {
	size = min(size, p.bytes)
	p.bytes -= size
	p.relay.Table.Bodies.Return(p.client, size)
}

// Close accepts no more questions. It returns how to answer those that are open, and whether the server has learned something from the client.
func (p *Pending) Close() (open []OpenQuestion, clientAnswered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.questions {
		open = append(open, OpenQuestion{x.server, x.id})
		p.releaseQuestion(x.size)
	}
	p.questions, p.closed = nil, true
	return open, p.clientAnswered
}

// An OpenQuestion is a question that the client did not answer.
type OpenQuestion struct {
	Server Server
	ID     jsontext.Value
}

// CancelQuestion removes a question for whose answer the server does not wait any more. The notification may overtake the question: then
// the question is dropped when it arrives.
func (p *Pending) CancelQuestion(id jsontext.Value) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, x := range p.questions {
		if string(x.id) == string(id) {
			p.questions = append(p.questions[:i:i], p.questions[i+1:]...)
			p.releaseQuestion(x.size)
			return
		}
	}
	if kind := id.Kind(); p.closed || kind != '"' && kind != '0' || len(id) > wire.MaxID {
		return // no question can have such an id
	}
	if len(p.cancelled) == MaxCancelled {
		p.cancelled = slices.Delete(p.cancelled, 0, 1)
	}
	p.cancelled = append(p.cancelled, string(id))
}

// takeCancelled reports, once, whether a question was cancelled before it arrived. The caller has the lock.
func (p *Pending) takeCancelled(id jsontext.Value) bool {
	i := slices.Index(p.cancelled, string(id))
	if i < 0 {
		return false
	}
	p.cancelled = slices.Delete(p.cancelled, i, i+1)
	return true
}

// ForgetCancelled drops the cancellations of the previous link, because ids repeat on the next one.
func (p *Pending) ForgetCancelled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancelled = nil
}

// Resume continues the pending request with an id, which is that of the client's request state, with the client's answers. The error object
// says why that is not possible.
func (r *Relay) Resume(ctx context.Context, c Caller, id string, responses jsontext.Value) (asks jsontext.Value, answer []byte, failed jsontext.Value) {
	p := r.pending.find(id)
	switch {
	case p == nil:
		return nil, nil, wire.ErrorObject(wire.InvalidParams,
			"what this requestState belongs to is over, and its outcome was told or not fetched in time", nil)
	case p.digest != requestDigest(c.Request):
		return nil, nil, wire.ErrorObject(wire.InvalidParams, "this requestState belongs to a request with other params", nil)
	}
	if failed = p.takeResponses(ctx, c, responses); failed != nil {
		return nil, nil, failed
	}
	asks, answer = p.wait(ctx, c)
	return asks, answer, nil
}

// takeResponses passes the client's answers to the server, and makes c the request that waits.
func (p *Pending) takeResponses(ctx context.Context, c Caller, responses jsontext.Value) (failed jsontext.Value) {
	given := make(map[string]jsontext.Value)
	wire.Each(responses, func(m wire.Piece) {
		if m.Value.Kind() != '{' {
			failed = wire.ErrorObject(wire.InvalidParams, `"inputResponses" has a member that is not an object`, nil)
		}
		given[m.Name] = m.Value
	})
	if failed != nil {
		return failed
	}
	answered, ok := p.attend(c, given)
	if !ok {
		return wire.ErrorObject(wire.InvalidRequest, "another request with this requestState is under way", nil)
	}
	ctx, cancel := answerContext(ctx)
	defer cancel()
	for _, x := range answered {
		result := wire.StripMeta(given[x.name])
		var failed jsontext.Value
		if p.relay.Record(ctx, p.client, p.server, ToServer, x.method, result) != nil {
			result, failed = nil, NotRecorded
		}
		p.answerServer(ctx, x, result, failed)
	}
	return nil
}

// attend makes c the request that waits, and returns the questions that it answers. It reports false if another request waits.
func (p *Pending) attend(c Caller, given map[string]jsontext.Value) (answered []question, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.attended.Load() {
		return nil, false
	}
	p.attended.Store(true)
	p.current = c.Capabilities
	p.out.Redirect(c.Out)
	var left []question
	for _, x := range p.questions {
		if given[x.name] != nil {
			answered, p.clientAnswered = append(answered, x), true
			p.releaseQuestion(x.size)
		} else {
			left = append(left, x)
		}
	}
	p.questions = left
	return answered, true
}
