package gateway

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// Codes of results that a client does not get.
const (
	CodeInputRefused  = "input_refused"  // the server asks for input that the client may not give, or cannot
	CodeResultRefused = "result_refused" // the server answered with a kind of result that nobody asked for
)

// mayReceive says why a result of a server does not go to the client; an empty code if it does. What asks for input goes to who
// can give it, if the operator exposes both that servers ask and what they ask for.
func (q *request) mayReceive(server *Server, f *resultInfo) (code, why string) {
	if f.kind != "complete" && f.kind != "input_required" {
		return CodeResultRefused, "it answered with a kind of result that nobody asked for"
	}
	switch {
	case !f.asks():
		return "", ""
	case !server.Expose.Has(ExposeInputRequired):
		return CodeInputRefused, "it asks for input, and the operator does not expose input_required"
	}
	can := q.capabilities()
	for _, requests := range f.requests {
		readable := wire.Each(requests, func(p wire.Piece) {
			method, params := readQuestion(p.Value)
			row := methodOf(fromServer, method)
			if row == nil || row.notification || row.by != byRelay || !server.Expose.Has(row.needs) {
				code, why = CodeInputRefused, "it asks for input of a kind that the operator does not expose"
				return
			}
			if no := can.cannotAnswer(method, params); no != "" {
				code, why = CodeInputRefused, "it asks for input: "+no
			}
		})
		if !readable {
			return CodeInputRefused, "it asks for input in a way that cannot be read"
		}
	}
	if code == "" && f.ambiguous {
		return CodeInputRefused, "it asks for input in a way that can be read as something else"
	}
	return code, why
}

// asksFor is what a question in a result is: a request.
func readQuestion(question []byte) (method string, params jsontext.Value) {
	wire.Each(question, func(p wire.Piece) { // what cannot be read asks for nothing that there is
		switch p.Name {
		case "method":
			method, _ = wire.Text(p.Value)
		case "params":
			params = p.Value
		}
	})
	return method, params
}

// inputRequest is a question in a result that is made here.
func inputRequest(method string, params jsontext.Value) jsontext.Value {
	if params == nil { // which some clients cannot do without
		params = jsontext.Value(`{}`)
	}
	var b wire.Object
	b.Add("method", wire.Quote(method))
	b.Add("params", params)
	return b.Done()
}

// inputRequired is the result that asks a stateless client something, and that has it come back with a state.
func inputRequired(requests jsontext.Value, state string) jsontext.Value {
	var b wire.Object
	b.Add("resultType", []byte(`"input_required"`))
	b.Add("inputRequests", requests)
	b.Add("requestState", wire.Quote(state))
	return b.Done()
}

// inputRefused is the error of a request that was passed on, and whose result does not go to the client.
func inputRefused(server *Server, code, why string) jsontext.Value {
	data := append([]byte(`{"code":`), wire.Quote(code)...)
	return wire.ErrorObject(wire.InternalError, "server "+server.Name+": "+why, append(data, '}'))
}

// showsURL is the error by which a server has a client show URLs to people, and then ask again (MCP 2025-11-25, elicitation).
const showsURL = -32042

// failBack answers with the error of a server, but for one that is an elicitation and may not be.
func (q *request) failBack(server *Server, failed jsontext.Value) []byte {
	shows := false
	wire.Each(failed, func(p wire.Piece) { // that it is an object was seen when it was received
		code, err := strconv.ParseFloat(string(p.Value), 64)
		shows = shows || p.Name == "code" && err == nil && code == showsURL
	})
	if can := q.capabilities(); !shows || server.Expose.Has(ExposeElicitation) && can.showsURLs() {
		return q.fail(wire.StripOwn(failed))
	}
	return q.fail(inputRefused(server, CodeInputRefused,
		"it has people open a URL, and the operator does not expose elicitation, or the client does not declare it"))
}

// input looks at what a client sends in answer to a server that asked for input, and returns the state as that server knows it.
func (g *Gateway) checkInput(q *request, server *Server, what string, p callParams) (state, failed jsontext.Value) {
	switch {
	case p.responses == nil && p.state == nil:
		return nil, nil
	case !server.Expose.Has(ExposeInputRequired) && p.state != nil:
		return nil, invalid(wire.InvalidParams, errForeignState+", and the operator does not expose input_required of server "+server.Name)
	case !server.Expose.Has(ExposeInputRequired):
		return nil, invalid(wire.InvalidParams, "the operator does not expose input_required of server "+server.Name)
	case !q.stateless():
		return nil, invalid(wire.InvalidParams, "revision "+q.Protocol+" has no inputResponses and no requestState")
	case p.state == nil:
		return nil, nil
	}
	text, err := wire.Text(p.state)
	if err != nil {
		return nil, invalid(wire.InvalidParams, `"requestState" is not a string`)
	}
	native, ok := g.states.open(stateServer, text, q.From, server.Name, what)
	if !ok {
		return nil, invalid(wire.InvalidParams, errForeignState)
	}
	return wire.Quote(native), nil
}

// brings is the state of a kind that a stateless client brings back, as it was before it was sealed, if the client was given it for this.
func (q *request) ownState(whose string, server *Server, what string, p callParams) (native string, ok bool) {
	if q.session != nil || p.state == nil {
		return "", false
	}
	text, err := wire.Text(p.state)
	if err != nil {
		return "", false
	}
	return q.gateway.states.open(whose, text, q.From, server.Name, what)
}

const errForeignState = "the requestState is not one that you were given for this, or the gateway has begun anew since; ask again without it"

// unsealed is [Gateway.input] for the params of a request that is passed on.
func (g *Gateway) openState(q *request, server *Server, what string, params jsontext.Value) (_, failed jsontext.Value) {
	p := callParams{responses: wire.NonNull(wire.Member(params, "inputResponses")), state: wire.NonNull(wire.Member(params, "requestState"))}
	state, failed := g.checkInput(q, server, what, p)
	if failed != nil || state == nil {
		return params, failed
	}
	native, err := wire.Set(params, "requestState", state)
	if err != nil {
		return nil, invalid(wire.InvalidParams, "the params cannot be read")
	}
	return native, nil
}

// sealed are the edits that bind the state of a result to the client that gets it.
func (g *Gateway) sealState(q *request, server *Server, what string, f *resultInfo) (edits []wire.Edit) {
	if !f.asks() {
		return nil
	}
	for _, p := range f.state {
		if native, err := wire.Text(p.Value); err == nil {
			edits = append(edits, wire.Edit{At: p.At, Length: len(p.Value), With: wire.Quote(g.states.seal(stateServer, native, q.From, server.Name, what))})
		}
	}
	return edits
}
