package gateway

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

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
	"pgfsm/policy/canonical"
)

// Bounds of what a client is asked.
const (
	maxQuestions      = 64      // of one errand, or of one result of a server, that are not answered
	maxQuestionBytes  = 4 << 20 // bytes of one errand's questions that are not answered: a server's message may be larger
	maxCancelledEarly = 64      // ids of one errand that were withdrawn before their questions came

	// collectTime is for how long the gateway collects questions after the first before it asks a client that is asked in results.
	collectTime = 50 * time.Millisecond
)

// parked reports whether the errand goes on, and no request of its client waits for it. It takes no lock: who has that may wait for a client
// that does not read.
func (e *pendingRequest) unattended() bool { return !e.attended.Load() && !e.ended() }

// An errand is a request of a stateless client to a server with sessions, which may ask the client something before it answers. A
// client of the stateless revisions is asked in a result, and comes back with its answers: meanwhile the errand goes on.
type pendingRequest struct {
	gateway       *Gateway
	from          Identity
	server        *Server
	target        string             // the tool, or another method
	params        [sha256.Size]byte  // see sameRequest
	size          int                // of the request and of an answer that waits, in bytes, if they are more than a little
	first         clientCapabilities // of the client, as the request that began it says: the server was told of no others
	out           *clientStream
	ctx           context.Context // that it goes on in
	cancel        context.CancelFunc
	finished      chan struct{} // closed once there is an answer
	forwarded     forwarded
	answer        Answer
	newQuestion   chan struct{} // a question has come
	waitedForLink atomic.Bool   // for a line of its own
	attended      atomic.Bool   // a request of the client waits for it; who changes that has the lock

	mu             sync.Mutex
	id             string             // by which the client finds it again; empty: nothing was asked yet
	current        clientCapabilities // of the client, as that says, or the last that waited
	questions      []question         // in the order in which they came
	cancelledEarly []string           // the last ids that were withdrawn and are no question's yet
	questionBytes  int                // bytes of the questions, and of those that are about to come
	lastNumber     int                // the number of the last question
	clientAnswered bool               // the server was told something by the client
	closed         bool               // nothing more is asked
	timer          *time.Timer
}

// start begins the work beside the request that it is for, and answers that: with what the work has come to, or with what the server asks.
func (e *pendingRequest) start(ctx context.Context, q *request) []byte {
	e.ctx, e.cancel = context.WithCancel(context.WithValue(context.WithoutCancel(ctx), pendingKey{}, e))
	stop := func() bool { return true }
	if q.Client != nil {
		stop = context.AfterFunc(q.Client, e.cancel)
	}
	go func() {
		defer stop()
		defer e.cancel()
		e.runWork()
		_, _ = e.close() // whatever line they came over
		close(e.finished)
		e.gateway.pending.ended(e)
	}()
	return e.wait(ctx, q)
}

// do does the work. As with a request that runs by itself a bug costs the client its answer, and nobody else.
func (e *pendingRequest) runWork() {
	defer func() {
		if recover() != nil {
			e.gateway.options.Log.Error("a request broke off because of a bug", "server", e.server.Name, "stack", string(debug.Stack()))
			e.answer = Answer{Error: invalid(wire.InternalError, "there is no answer")}
		}
	}()
	e.answer = e.forwarded.run(e.ctx)
}

// wait answers a request of the errand's client: with the answer, or with what the server asks, once it was collected. A connection that
// is lost cancels the errand, as it does any stateless request.
func (e *pendingRequest) wait(ctx context.Context, q *request) []byte {
	gone := ctx.Done()
	var collected <-chan time.Time // nil: there is no question
	for {
		if collected == nil && e.hasQuestions() {
			collected = time.After(collectTime)
		}
		select {
		case <-e.finished:
			e.gateway.pending.remove(e)
			return e.forwarded.respond(q, &e.answer)
		case <-e.newQuestion:
		case <-collected:
			collected = nil
			asks, refused := e.askClient(q)
			e.refuseQuestions(ctx, refused)
			if asks != nil {
				return q.result(asks)
			}
		case <-gone:
			e.cancel()
			gone = nil
		}
	}
}

// hasQuestions reports whether the client is to be asked something. Once the errand is cancelled nobody is.
func (e *pendingRequest) hasQuestions() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.questions) > 0 && e.ctx.Err() == nil
}

// park is the result that asks the client what the server wants to know; nil if it wants nothing, or does not want it any more. If there is
// one, no request of the client waits for the errand afterwards. What is refused is for the server to hear.
func (e *pendingRequest) askClient(q *request) (asks jsontext.Value, refused []question) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended() || e.ctx.Err() != nil {
		return nil, nil
	}
	if refused = e.dropUnanswerable(); len(e.questions) == 0 {
		return nil, refused
	}
	var all wire.Object
	for _, x := range e.questions {
		all.Add(x.name, inputRequest(x.method, x.params))
	}
	e.attended.Store(false)
	e.out.redirect(nil)
	return inputRequired(all.Done(), e.gateway.states.seal(statePending, e.id, q.From, e.server.Name, e.target)), refused
}

// sift takes out the questions that the request which waits says its client cannot answer. Capabilities are those of each request, and what a
// request does not declare must not be asked in its result. The errand's lock is held.
func (e *pendingRequest) dropUnanswerable() (refused []question) {
	if e.current == e.first { // by which all were let in
		return nil
	}
	var left []question
	for _, x := range e.questions {
		if e.current.cannotAnswer(x.method, x.params) == "" {
			left = append(left, x)
			continue
		}
		refused, e.clientAnswered = append(refused, x), true
		e.releaseQuestion(x.size)
	}
	e.questions = left
	return refused
}

// refuse tells the server that the client does not offer what it asks any more.
func (e *pendingRequest) refuseQuestions(ctx context.Context, all []question) {
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWait)
	defer cancel()
	for _, x := range all {
		e.answerServer(ctx, x, nil, notOffered)
	}
}

// tell answers a question. When the request is over the id is another's, perhaps, and nobody is told.
func (e *pendingRequest) answerServer(ctx context.Context, x question, result, failed jsontext.Value) {
	if x.line.pending.Load() == e {
		_ = x.line.Answer(ctx, x.id, result, failed) // a server that cannot be told has lost its link
	}
}

func (e *pendingRequest) ended() bool {
	select {
	case <-e.finished:
		return true
	default:
		return false
	}
}

// ask takes a question of the server. The error object says why the client is not asked.
func (e *pendingRequest) relayQuestion(ctx context.Context, l *link, m wire.Message) (failed jsontext.Value) {
	switch {
	case e.gateway.table.Requests.Stopped():
		return invalid(wire.InternalError, "the client cannot come back: the gateway is stopping")
	case e.wasCancelled(m.ID):
		return nil
	case !e.canAnswer(m.Method, m.Params):
		return notOffered
	}
	size := len(m.Params)
	if !e.reserveQuestion(size) { // what is refused is not recorded as passed
		return tooManyQuestions
	}
	defer func() {
		if failed != nil {
			e.mu.Lock()
			e.releaseQuestion(size)
			e.mu.Unlock()
		}
	}()
	params := wire.StripMeta(m.Params)
	shown := wire.StripProgressToken(params) // in a result there is no way to say how far one is
	if params != nil && wire.Members(shown, func(string, jsontext.Value) error { return nil }) != nil {
		return invalid(wire.InvalidParams, "its params cannot be read")
	}
	if e.gateway.record(ctx, e.from, l.server, ToClient, m.Method, params) != nil {
		return notRecorded
	}
	if shown != nil {
		shown = e.gateway.options.Mask(shown)
	}
	return e.addQuestion(question{id: m.ID, line: l, method: m.Method, params: shown, size: size})
}

// put has the client asked a question that there is room for.
func (e *pendingRequest) addQuestion(x question) (failed jsontext.Value) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed || len(e.questions) >= maxQuestions:
		return tooManyQuestions
	case e.takeCancelled(x.id): // meanwhile
		e.releaseQuestion(x.size)
		return nil
	}
	e.lastNumber++
	x.name, x.id, x.params = "q"+strconv.Itoa(e.lastNumber), x.id.Clone(), x.params.Clone()
	e.questions = append(e.questions, x)
	select {
	case e.newQuestion <- struct{}{}:
	default:
	}
	return nil
}

// offers reports whether the client can be asked something, as the request that waits says, or the last that did. The server was told
// what the first said.
func (e *pendingRequest) canAnswer(method string, params jsontext.Value) bool {
	e.mu.Lock()
	now := e.current
	e.mu.Unlock()
	return now == e.first || now.cannotAnswer(method, params) == ""
}

// room makes room for one question more, as far as the server asks one at a time. It is given back by forget.
func (e *pendingRequest) reserveQuestion(size int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := &e.gateway.pending
	if e.closed || len(e.questions) >= maxQuestions || size > maxQuestionBytes-e.questionBytes || !t.add(e) || !t.bodies.Take(e.from, size) {
		return false
	}
	e.questionBytes += size
	return true
}

// forget gives the room of a question back, if that was not done for all of them. The errand's lock is held.
func (e *pendingRequest) releaseQuestion(size int) {
	size = min(size, e.questionBytes)
	e.questionBytes -= size
	e.gateway.pending.bodies.Return(e.from, size)
}

// close lets nothing more be asked. It returns what was not answered, and whether anything was.
func (e *pendingRequest) close() (open []question, told bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	open, e.questions, e.closed = e.questions, nil, true
	for _, x := range open {
		e.releaseQuestion(x.size)
	}
	return open, e.clientAnswered
}

// withdraw forgets a question that the server does not wait to be answered any more. Beside the stream of a request questions are passed on
// one beside the other, so it may not have come yet: then it is forgotten when it comes.
func (e *pendingRequest) cancelQuestion(theirs jsontext.Value) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, x := range e.questions {
		if string(x.id) == string(theirs) {
			e.questions = append(e.questions[:i:i], e.questions[i+1:]...)
			e.releaseQuestion(x.size)
			return
		}
	}
	if kind := theirs.Kind(); e.closed || kind != '"' && kind != '0' || len(theirs) > wire.MaxID {
		return // no question has such an id
	}
	if len(e.cancelledEarly) == maxCancelledEarly { // the oldest: what overtakes is not far ahead
		e.cancelledEarly = slices.Delete(e.cancelledEarly, 0, 1)
	}
	e.cancelledEarly = append(e.cancelledEarly, string(theirs))
}

// unsaid reports whether a question was withdrawn before it came. That counts once. The errand's lock is held.
func (e *pendingRequest) takeCancelled(id jsontext.Value) bool {
	i := slices.Index(e.cancelledEarly, string(id))
	if i < 0 {
		return false
	}
	e.cancelledEarly = slices.Delete(e.cancelledEarly, i, i+1)
	return true
}

func (e *pendingRequest) wasCancelled(id jsontext.Value) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.takeCancelled(id)
}

// moves has what was withdrawn on the link before say nothing of another link, where ids come again.
func (e *pendingRequest) forgetCancelled() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cancelledEarly = nil
}

// come gives the client's answers to the server, and makes the request the one that waits. The error object says why not.
func (e *pendingRequest) resume(ctx context.Context, q *request, responses jsontext.Value) (failed jsontext.Value) {
	given := make(map[string]jsontext.Value)
	wire.Each(responses, func(member wire.Piece) {
		name, value := member.Name, member.Value
		if value.Kind() != '{' {
			failed = invalid(wire.InvalidParams, `"inputResponses" has a member that is not an object`)
		}
		given[name] = value
	})
	if failed != nil {
		return failed
	}
	answered, ok := e.attend(q, given)
	if !ok {
		return invalid(wire.InvalidRequest, "another request with this requestState is under way")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWait)
	defer cancel()
	for _, x := range answered {
		result := wire.StripMeta(given[x.name])
		var failed jsontext.Value
		if e.gateway.record(ctx, e.from, e.server, ToServer, x.method, result) != nil {
			result, failed = nil, notRecorded
		}
		e.answerServer(ctx, x, result, failed)
	}
	return nil
}

// enter makes a request the one that waits, and returns the questions that it answers. False: another one waits.
func (e *pendingRequest) attend(q *request, given map[string]jsontext.Value) (answered []question, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.attended.Load() {
		return nil, false
	}
	e.attended.Store(true)
	e.current = q.capabilities()
	e.out.redirect(q.resumedSender())
	var left []question
	for _, x := range e.questions {
		if given[x.name] != nil {
			answered, e.clientAnswered = append(answered, x), true
			e.releaseQuestion(x.size)
		} else {
			left = append(left, x)
		}
	}
	e.questions = left
	return answered, true
}

// A question is a server's request to the client of an errand.
type question struct {
	name   string // the client's
	id     jsontext.Value
	line   *link
	method string
	params jsontext.Value
	size   int // as the server sent it, in bytes
}

// sameRequest is what two requests have in common of which the second repeats the first: the method, and all of the params that a client
// does not change when it repeats a request with its answers.
func requestDigest(q *request) [sha256.Size]byte {
	var b wire.Object
	wire.Each(q.Params, func(member wire.Piece) {
		name, value := member.Name, member.Value
		switch name {
		case "_meta", "inputResponses", "requestState":
		default:
			b.Add(name, value)
		}
	})
	same, err := canonical.JSON(b.Done())
	if err != nil { // it was read strictly before
		same = b.Done()
	}
	return sha256.Sum256(slices.Concat([]byte(q.Method+"\n"), same))
}

// work is what goes on while the client is asked.
type forwarded interface {
	run(context.Context) Answer
	respond(*request, *Answer) []byte
}

// mayAsk reports whether the server of a stateless client's request may ask that client something by itself.
func (g *Gateway) serverMayAsk(ctx context.Context, q *request, server *Server) bool {
	if q.session != nil || server.Expose&(ExposeSampling|ExposeElicitation|ExposeRoots) == 0 || len(q.capabilities().forServer(server.Expose)) == len(`{}`) {
		return false
	}
	if _, known := g.pool.capabilitiesOf(server.Name); !known {
		if l, err := g.linkTo(ctx, q, server); err == nil {
			l.release()
		}
	}
	return g.pool.knownStateful(server.Name)
}

// newErrand makes an errand of a request. What is said to the client meanwhile goes over said.
func (g *Gateway) newPendingRequest(q *request, server *Server, what string, said *clientStream, w forwarded) *pendingRequest {
	e := &pendingRequest{
		gateway: g, from: q.From, server: server, target: what, params: requestDigest(q), first: q.capabilities(), out: said, forwarded: w,
		finished: make(chan struct{}), newQuestion: make(chan struct{}, 1), current: q.capabilities(),
	}
	e.attended.Store(true)
	if len(q.Params) > session.Small {
		e.size = len(q.Params)
	}
	return e
}

var notOffered = invalid(wire.MethodNotFound, "the client does not offer this")

var tooManyQuestions = invalid(wire.InternalError, "the client has not answered what it was asked before")

// resumed answers a request that repeats an errand's, with the client's answers; ours is false if it does not.
func (g *Gateway) resumePending(ctx context.Context, q *request, server *Server, what string, p callParams) (message []byte, ours bool) {
	id, ok := q.ownState(statePending, server, what, p)
	if !ok {
		return nil, false
	}
	e := g.pending.find(id)
	switch {
	case e == nil:
		return q.refuse(wire.InvalidParams, "what this requestState belongs to is over, and its outcome was told or not fetched in time"), true
	case e.params != requestDigest(q):
		return q.refuse(wire.InvalidParams, "this requestState belongs to a request with other params"), true
	}
	if failed := e.resume(ctx, q, p.responses); failed != nil {
		return q.fail(failed), true
	}
	return e.wait(ctx, q), true
}
