package gateway

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// Bounds of what a server may ask a client with a session that does so in its results.
const (
	maxRounds = 8                // for one answer
	inputWait = 10 * time.Minute // for which a client's answers are waited for
)

// rounds is what one request has come to while its server asked for input.
type inputRounds struct {
	count       int
	answerBytes int // bytes of the answers that it is repeated with
}

// end gives back the room of the answers: the request is over.
func (r *inputRounds) end(g *Gateway, q *request) {
	if r.answerBytes > 0 {
		g.table.Bodies.Return(q.From, r.answerBytes)
	}
}

// A round is what a client with a session is asked because a result says so, as servers of the stateless revisions do: each question
// is a request to the client, and its answers go with the repetition of the request.
type inputRound struct {
	gateway *Gateway
	q       *request
	server  *Server
	out     *clientStream
	names   []string
	ids     []jsontext.Value // of the requests to the client
	methods []string
	answers chan inputAnswer

	mu          sync.Mutex
	answerBytes int // bytes of the answers
	ended       bool
}

// ask sends the questions. A reason says that it could not.
func (r *inputRound) sendQuestions(ctx context.Context, f *resultInfo) (why string) {
	for _, requests := range f.requests { // as above
		wire.Each(requests, func(x wire.Piece) { // it was read before
			if why != "" {
				return
			}
			if len(r.ids) == maxQuestions {
				why = "it has too many questions"
				return
			}
			method, params := readQuestion(x.Value)
			why = r.sendQuestion(ctx, x.Name, method, params)
		})
	}
	return why
}

// put sends one question.
func (r *inputRound) sendQuestion(ctx context.Context, name, method string, params jsontext.Value) (why string) {
	params = withElicitationID(method, wire.StripMeta(params))
	if r.gateway.record(ctx, r.q.From, r.server, ToClient, method, params) != nil {
		return "that could not be recorded"
	}
	if params != nil {
		params = r.gateway.options.Mask(params)
	}
	at := len(r.ids)
	id := r.q.session.addClientRequest(&clientRequest{method: method, reply: func(m wire.Message) {
		r.answers <- r.receiveAnswer(at, m) // there is room: it is called once for each
	}})
	r.names, r.ids, r.methods = append(r.names, name), append(r.ids, id), append(r.methods, method)
	if r.out.send(wire.Call(nil, id, method, params)) != nil {
		return "the client is gone"
	}
	return ""
}

// take keeps an answer until all are there. All of them together have the room that one message has, as where they come in one.
func (r *inputRound) receiveAnswer(at int, m wire.Message) inputAnswer {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := len(m.Result)
	if m.Error != nil || r.ended || size > r.gateway.table.Limits.BodyBytes-r.answerBytes || !r.gateway.table.Bodies.Take(r.q.From, size) {
		return inputAnswer{index: at}
	}
	r.answerBytes += size
	return inputAnswer{at, m.Result.Clone()}
}

// end lets go of the questions, and returns how many bytes of answers there are. They count until the request is over: what it is repeated
// with is kept.
func (r *inputRound) end() int {
	r.cancelOpenQuestions()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	return r.answerBytes
}

// wait is the inputResponses that the client's answers make; nil if nothing was asked.
func (r *inputRound) waitForAnswers(ctx context.Context) (responses jsontext.Value, why string) {
	results := make([]jsontext.Value, len(r.ids))
	for range r.ids {
		select {
		case a := <-r.answers:
			if a.result.Kind() != '{' {
				return nil, "the client answered with an error, or too much"
			}
			result := wire.StripMeta(a.result)
			if r.gateway.record(ctx, r.q.From, r.server, ToServer, r.methods[a.index], result) != nil {
				return nil, "what the client answered could not be recorded"
			}
			results[a.index] = result
		case <-ctx.Done():
			return nil, "the client did not answer"
		case <-r.q.session.Context.Done():
			return nil, "the client has ended its session"
		case <-r.gateway.table.Requests.Stopping():
			return nil, "the gateway is stopping"
		}
	}
	if len(results) == 0 {
		return nil, ""
	}
	var b wire.Object
	for i, result := range results {
		b.Add(r.names[i], result)
	}
	return b.Done(), ""
}

// withdraw tells the client of those questions that nobody waits for any more.
func (r *inputRound) cancelOpenQuestions() {
	for _, id := range r.ids {
		if r.q.session.takeClientRequest(id) == nil {
			continue
		}
		params := slices.Concat([]byte(`{"requestId":`), id, []byte(`}`))
		_ = r.out.send(wire.Call(nil, nil, methodCancelled, params)) // a client that is gone waits for nothing
	}
}

// A given is a client's answer to one question; without a result it is an error, or too large.
type inputAnswer struct {
	index  int
	result jsontext.Value
}

// another asks a client with a session what a result asks, one round more of its request, and waits for the answers until ctx ends. It
// returns what the repetition of the request has in addition. Asks is false if the result asks nothing, or the client is not asked in this
// way; a code says that the request is not repeated, and why.
func (g *Gateway) askSession(ctx context.Context, q *request, server *Server, said *clientStream, result jsontext.Value, all *inputRounds) (
	more callParams, asks bool, code, why string) {
	if q.session == nil {
		return more, false, "", ""
	}
	f, ok := readResult(result)
	if !ok || !f.asks() {
		return more, false, "", ""
	}
	if code, why = q.mayReceive(server, &f); code != "" {
		return more, true, code, why
	}
	if all.count >= maxRounds {
		return more, true, CodeInputRefused, "it asks for input again and again"
	}
	all.count++
	ctx, cancel := context.WithTimeout(ctx, inputWait)
	defer cancel()
	r := &inputRound{gateway: g, q: q, server: server, out: said, answers: make(chan inputAnswer, maxQuestions)}
	defer func() { all.answerBytes += r.end() }()
	if why = r.sendQuestions(ctx, &f); why == "" {
		more.responses, why = r.waitForAnswers(ctx)
	}
	if why != "" {
		return more, true, CodeInputRefused, "it asks for input: " + why
	}
	for _, s := range f.state { // at most one: what can be read in more ways does not pass
		more.state = wire.NonNull(s.Value)
	}
	if more.responses == nil && more.state == nil { // to repeat it would be to make it twice
		return more, true, CodeInputRefused, "it asks for no input, and would again and again"
	}
	return more, true, "", ""
}

// numbered is the params of an elicitation by URL with the id that revisions with sessions want there, if the server gave none.
func withElicitationID(method string, params jsontext.Value) jsontext.Value {
	if method != "elicitation/create" || wire.TextMember(params, "mode") != "url" || hasMember(params, "elicitationId") {
		return params
	}
	if with, err := wire.Set(params, "elicitationId", wire.Quote(rand.Text())); err == nil {
		return with
	}
	return params
}
