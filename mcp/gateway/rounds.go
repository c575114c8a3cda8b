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
type rounds struct {
	made int
	held int // bytes of the answers that it is repeated with
}

// end gives back the room of the answers: the request is over.
func (r *rounds) end(g *Gateway, q *request) {
	if r.held > 0 {
		g.table.Bodies.Return(q.From, r.held)
	}
}

// A round is what a client with a session is asked because a result says so, as servers of the stateless revisions do: each question
// is a request to the client, and its answers go with the repetition of the request.
type round struct {
	gateway *Gateway
	q       *request
	server  *Server
	said    *stream
	names   []string
	ids     []jsontext.Value // of the requests to the client
	methods []string
	answers chan given

	mu    sync.Mutex
	given int // bytes of the answers
	over  bool
}

// A given is a client's answer to one question; without a result it is an error, or too large.
type given struct {
	at     int
	result jsontext.Value
}

// another asks a client with a session what a result asks, one round more of its request, and waits for the answers until ctx ends. It
// returns what the repetition of the request has in addition. Asks is false if the result asks nothing, or the client is not asked in this
// way; a code says that the request is not repeated, and why.
func (g *Gateway) another(ctx context.Context, q *request, server *Server, said *stream, result jsontext.Value, all *rounds) (
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
	if all.made >= maxRounds {
		return more, true, CodeInputRefused, "it asks for input again and again"
	}
	all.made++
	ctx, cancel := context.WithTimeout(ctx, inputWait)
	defer cancel()
	r := &round{gateway: g, q: q, server: server, said: said, answers: make(chan given, maxQuestions)}
	defer func() { all.held += r.end() }()
	if why = r.ask(ctx, &f); why == "" {
		more.responses, why = r.wait(ctx)
	}
	if why != "" {
		return more, true, CodeInputRefused, "it asks for input: " + why
	}
	for _, s := range f.state { // at most one: what can be read in more ways does not pass
		more.state = present(s.Value)
	}
	if more.responses == nil && more.state == nil { // to repeat it would be to make it twice
		return more, true, CodeInputRefused, "it asks for no input, and would again and again"
	}
	return more, true, "", ""
}

// onto is the params of a request with what its repetition has in addition. A code says that it cannot be.
func (p *callParams) onto(params jsontext.Value) (_ jsontext.Value, code string) {
	params, err := wire.Set(params, "inputResponses", p.responses)
	if err == nil {
		params, err = wire.Set(params, "requestState", p.state)
	}
	if err != nil { // params that cannot be read do not get here
		return nil, CodeInputRefused
	}
	return params, ""
}

// ask sends the questions. A reason says that it could not.
func (r *round) ask(ctx context.Context, f *finding) (why string) {
	for _, requests := range f.requests { // as above
		wire.Each(requests, func(x wire.Piece) { // it was read before
			if why != "" {
				return
			}
			if len(r.ids) == maxQuestions {
				why = "it has too many questions"
				return
			}
			method, params := asksFor(x.Value)
			why = r.put(ctx, x.Name, method, params)
		})
	}
	return why
}

// put sends one question.
func (r *round) put(ctx context.Context, name, method string, params jsontext.Value) (why string) {
	params = numbered(method, cross(params, ""))
	if r.gateway.passes(ctx, r.q.From, r.server, ToClient, method, params) != nil {
		return "that could not be recorded"
	}
	if params != nil {
		params = r.gateway.options.Mask(params)
	}
	at := len(r.ids)
	id := r.q.session.await(&ask{method: method, reply: func(m wire.Message) {
		r.answers <- r.take(at, m) // there is room: it is called once for each
	}})
	r.names, r.ids, r.methods = append(r.names, name), append(r.ids, id), append(r.methods, method)
	if r.said.send(wire.Call(nil, id, method, params)) != nil {
		return "the client is gone"
	}
	return ""
}

// take keeps an answer until all are there. All of them together have the room that one message has, as where they come in one.
func (r *round) take(at int, m wire.Message) given {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := len(m.Result)
	if m.Error != nil || r.over || size > r.gateway.table.Limits.BodyBytes-r.given || !r.gateway.table.Bodies.Take(r.q.From, size) {
		return given{at: at}
	}
	r.given += size
	return given{at, m.Result.Clone()}
}

// end lets go of the questions, and returns how many bytes of answers there are. They count until the request is over: what it is repeated
// with is kept.
func (r *round) end() int {
	r.withdraw()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	return r.given
}

// numbered is the params of an elicitation by URL with the id that revisions with sessions want there, if the server gave none.
func numbered(method string, params jsontext.Value) jsontext.Value {
	if method != "elicitation/create" || text(params, "mode") != "url" || has(params, "elicitationId") {
		return params
	}
	if with, err := wire.Set(params, "elicitationId", wire.Quote(rand.Text())); err == nil {
		return with
	}
	return params
}

// wait is the inputResponses that the client's answers make; nil if nothing was asked.
func (r *round) wait(ctx context.Context) (responses jsontext.Value, why string) {
	results := make([]jsontext.Value, len(r.ids))
	for range r.ids {
		select {
		case a := <-r.answers:
			if a.result.Kind() != '{' {
				return nil, "the client answered with an error, or too much"
			}
			result := cross(a.result, "")
			if r.gateway.passes(ctx, r.q.From, r.server, ToServer, r.methods[a.at], result) != nil {
				return nil, "what the client answered could not be recorded"
			}
			results[a.at] = result
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
	var b object
	for i, result := range results {
		b.add(r.names[i], result)
	}
	return b.done(), ""
}

// withdraw tells the client of those questions that nobody waits for any more.
func (r *round) withdraw() {
	for _, id := range r.ids {
		if r.q.session.take(id) == nil {
			continue
		}
		params := slices.Concat([]byte(`{"requestId":`), id, []byte(`}`))
		_ = r.said.send(wire.Call(nil, nil, methodCancelled, params)) // a client that is gone waits for nothing
	}
}
