package ask

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// Bounds of the questions of a stateless server to the client of a session.
const (
	MaxRounds    = 8                // results that ask, for one request
	InputTimeout = 10 * time.Minute // for the answers to one result
)

// Rounds counts the results of one request that asked the client of a session.
type Rounds struct {
	count       int
	answerBytes int // taken from the budget for bodies
}

// End gives the memory of the answers back: the request is answered.
func (r *Rounds) End(table *session.Table, client session.Identity) {
	if r.answerBytes > 0 {
		table.Bodies.Return(client, r.answerBytes)
	}
}

// A Client is the client of a session that is asked.
type Client struct {
	*session.Session
	Requests *Requests
	Out      *session.RequestSender // of the request during which the client is asked
}

// A round is one result whose questions are sent to the client as requests.
type round struct {
	relay   *Relay
	client  Client
	server  string
	names   []string
	ids     []jsontext.Value // of the requests to the client
	methods []string
	answers chan answer

	mu    sync.Mutex
	bytes int // of the answers
	ended bool
}

// An answer is the client's answer to one question. Without a result, the client answered with an error or too much.
type answer struct {
	index  int
	result jsontext.Value
}

// AskSession sends the questions of a result, which are objects of the member inputRequests, to the client, and waits for the answers. They
// are the inputResponses of the repeated request; nil if there was no question. Why says that there are no answers.
func (r *Relay) AskSession(ctx context.Context, c Client, server string, questions [][]byte, all *Rounds) (responses jsontext.Value, why string) {
	if all.count++; all.count > MaxRounds {
		return nil, "it asks for input again and again"
	}
	ctx, cancel := context.WithTimeout(ctx, InputTimeout)
	defer cancel()
	x := &round{relay: r, client: c, server: server, answers: make(chan answer, MaxQuestions)}
	defer func() { all.answerBytes += x.end() }()
	why = x.sendAll(ctx, questions)
	if why == "" {
		responses, why = x.wait(ctx)
	}
	if why != "" {
		return nil, "it asks for input: " + why
	}
	return responses, ""
}

func (x *round) sendAll(ctx context.Context, questions [][]byte) (why string) {
	for _, object := range questions {
		wire.Each(object, func(p wire.Piece) {
			switch {
			case why != "":
			case len(x.ids) == MaxQuestions:
				why = "it has too many questions"
			default:
				method, params := Question(p.Value)
				why = x.send(ctx, p.Name, method, params)
			}
		})
	}
	return why
}

func (x *round) send(ctx context.Context, name, method string, params jsontext.Value) (why string) {
	params = withElicitationID(method, wire.StripMeta(params))
	if x.relay.Record(ctx, x.client.Session.Client, x.server, ToClient, method, params) != nil {
		return "that could not be recorded"
	}
	if params != nil {
		params = x.relay.Mask(params)
	}
	index := len(x.ids)
	id := x.client.Requests.Add(&Request{Method: method, Reply: func(m wire.Message) {
		x.answers <- x.receive(index, m) // the channel has room for each question's answer
	}})
	x.names, x.ids, x.methods = append(x.names, name), append(x.ids, id), append(x.methods, method)
	if x.client.Out.Send(wire.Call(nil, id, method, params)) != nil {
		return "the client is gone"
	}
	return ""
}

// receive keeps an answer. All answers of a round together may be as large as one message.
func (x *round) receive(index int, m wire.Message) answer {
	x.mu.Lock()
	defer x.mu.Unlock()
	table, size := x.relay.Table, len(m.Result)
	if m.Error != nil || x.ended || size > table.Limits.BodyBytes-x.bytes || !table.Bodies.Take(x.client.Session.Client, size) {
		return answer{index: index}
	}
	x.bytes += size
	return answer{index, m.Result.Clone()}
}

// end cancels the open questions, and returns how many bytes the answers took from the budget.
func (x *round) end() int {
	for _, id := range x.ids {
		if x.client.Requests.Take(id) == nil {
			continue
		}
		_ = x.client.Out.Send(wire.Call(nil, nil, "notifications/cancelled", wire.Single("requestId", id))) // a client that is gone waits for nothing
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	return x.bytes
}

// elicitationID is the member that tells elicitations by URL apart in revisions with sessions.
const elicitationID = "elicitationId"

// withElicitationID adds the id to an elicitation by URL that revisions with sessions require.
func withElicitationID(method string, params jsontext.Value) jsontext.Value {
	if method != "elicitation/create" || wire.TextMember(params, "mode") != "url" || hasMember(params, elicitationID) {
		return params
	}
	if with, err := wire.Set(params, elicitationID, wire.Quote(rand.Text())); err == nil {
		return with
	}
	return params
}

// wait waits for all answers.
func (x *round) wait(ctx context.Context) (responses jsontext.Value, why string) {
	results := make([]jsontext.Value, len(x.ids))
	for range x.ids {
		select {
		case a := <-x.answers:
			if a.result.Kind() != '{' {
				return nil, "the client answered with an error, or too much"
			}
			result := wire.StripMeta(a.result)
			if x.relay.Record(ctx, x.client.Session.Client, x.server, ToServer, x.methods[a.index], result) != nil {
				return nil, "what the client answered could not be recorded"
			}
			results[a.index] = result
		case <-ctx.Done():
			return nil, "the client did not answer"
		case <-x.client.Context.Done():
			return nil, "the client has ended its session"
		case <-x.relay.Table.Requests.Stopping():
			return nil, "the gateway is stopping"
		}
	}
	if len(results) == 0 {
		return nil, ""
	}
	var b wire.Object
	for i, result := range results {
		b.Add(x.names[i], result)
	}
	return b.Done(), ""
}
