package gateway

import (
	"context"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/wire"
)

// Codes of results that a client does not get.
const (
	CodeInputRefused  = "input_refused"  // the server asks for input that the client may not or cannot give
	CodeResultRefused = "result_refused" // the server answered with a type of result that nobody asked for
)

// checkResult says why a server's result does not go to the client; code is empty if it does. A result that asks for input passes if the
// operator exposes input_required and what it asks for, and the client declares the capability.
func (q *request) checkResult(server *server, f *resultInfo) (code, why string) {
	if f.kind != "complete" && f.kind != "input_required" {
		return CodeResultRefused, "it answered with a kind of result that nobody asked for"
	}
	switch {
	case !f.asks():
		return "", ""
	case !server.Expose.Has(ExposeInputRequired):
		return CodeInputRefused, "it asks for input, and the operator does not expose input_required"
	}
	for _, questions := range f.questions {
		readable := wire.Each(questions, func(p wire.Piece) {
			method, params := ask.Question(p.Value)
			row := methodOf(fromServer, method)
			if row == nil || row.notification || row.by != byRelay || !server.Expose.Has(row.needs) {
				code, why = CodeInputRefused, "it asks for input of a kind that the operator does not expose"
				return
			}
			if lacks := q.capabilities().Lacks(method, params); lacks != "" {
				code, why = CodeInputRefused, "it asks for input: "+lacks
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

// inputRefused is the error of a relayed request whose result does not go to the client.
func inputRefused(server *server, code, why string) jsontext.Value {
	return wire.ErrorObject(wire.InternalError, "server "+server.Name+": "+why, wire.Single("code", wire.Quote(code)))
}

// askSession asks the client of a session what a result asks for. Input is what the repeated request has in addition. Asks is false if the
// result asks nothing, or the client has no session. A code says why the request is not repeated.
func (f *forward) askSession(ctx context.Context, rounds *ask.Rounds) (input clientInput, asks bool, code, why string) {
	s := f.q.session
	if s == nil || !f.info.isObject || !f.info.asks() {
		return input, false, "", ""
	}
	if code, why = f.q.checkResult(f.server, &f.info); code != "" {
		return input, true, code, why
	}
	client := ask.Client{Session: s.Session, Requests: &s.requests, Out: f.out}
	if input.responses, why = f.gateway.asks.AskSession(ctx, client, f.server.Name, f.info.questions, rounds); why != "" {
		return input, true, CodeInputRefused, why
	}
	for _, s := range f.info.state { // at most one: an ambiguous result does not pass
		input.state = wire.NonNull(s.Value)
	}
	if input.responses == nil && input.state == nil { // the repetition would be the same request
		return input, true, CodeInputRefused, "it asks for no input, and would again and again"
	}
	select {
	case <-f.q.using.Value.replaced: // a run that begins now must not use the former configuration
		return input, true, CodeInputRefused, "the configuration was reloaded while the client answered; send the request again"
	default:
		return input, true, "", ""
	}
}

// clientInput is what a client sends with a repeated request. Members that are missing are nil.
type clientInput struct {
	responses jsontext.Value // inputResponses
	state     jsontext.Value // requestState
}

// readInput reads the input in the params of a request.
func readInput(params jsontext.Value) clientInput {
	return clientInput{
		responses: wire.NonNull(wire.Member(params, "inputResponses")), state: wire.NonNull(wire.Member(params, "requestState")),
	}
}

// addTo returns params with the input.
func (in clientInput) addTo(params jsontext.Value) (jsontext.Value, error) {
	params, err := wire.Set(params, "inputResponses", in.responses)
	if err != nil {
		return nil, err
	}
	return wire.Set(params, "requestState", in.state)
}

// codeShowsURL is the error by which a server has a client show URLs and repeat its request (MCP 2025-11-25, elicitation).
const codeShowsURL = -32042

// relayError answers with the error of a server, unless it is an elicitation that may not pass.
func (q *request) relayError(server *server, failed jsontext.Value) []byte {
	shows := false
	wire.Each(failed, func(p wire.Piece) {
		code, err := strconv.ParseFloat(string(p.Value), 64)
		shows = shows || p.Name == "code" && err == nil && code == codeShowsURL
	})
	if !shows || server.Expose.Has(ExposeElicitation) && q.capabilities().ShowsURLs() {
		return q.fail(wire.StripOwn(failed))
	}
	return q.fail(inputRefused(server, CodeInputRefused,
		"it has people open a URL, and the operator does not expose elicitation, or the client does not declare it"))
}

const foreignState = "the requestState is not one that this gateway has given you for this since it started; if another gateway has, send it there; " +
	"otherwise begin the request anew without it, but check first what a call that was under way has done"

// openState returns the request state as the server knows it. The error object says why the server does not get the client's input.
func (g *Gateway) openState(q *request, server *server, target string, in clientInput) (state, failed jsontext.Value) {
	switch {
	case in.responses == nil && in.state == nil:
		return nil, nil
	case !server.Expose.Has(ExposeInputRequired) && in.state != nil:
		return nil, invalid(wire.InvalidParams, foreignState+", and the operator does not expose input_required of server "+server.Name)
	case !server.Expose.Has(ExposeInputRequired):
		return nil, invalid(wire.InvalidParams, "the operator does not expose input_required of server "+server.Name)
	case !q.stateless():
		return nil, invalid(wire.InvalidParams, "revision "+q.Protocol+" has no inputResponses and no requestState")
	case in.state == nil:
		return nil, nil
	}
	text, err := wire.Text(in.state)
	if err != nil {
		return nil, invalid(wire.InvalidParams, `"requestState" is not a string`)
	}
	native, ok := g.asks.States.Open(ask.StateServer, text, q.From, server.Name, target)
	if !ok {
		return nil, invalid(wire.InvalidParams, foreignState)
	}
	return wire.Quote(native), nil
}

// ownState returns the gateway's own request state of a kind, if a stateless client brings one back that it was given for this target.
func (q *request) ownState(kind string, server *server, target string, in clientInput) (native string, ok bool) {
	if q.session != nil || in.state == nil {
		return "", false
	}
	text, err := wire.Text(in.state)
	if err != nil {
		return "", false
	}
	return q.gateway.asks.States.Open(kind, text, q.From, server.Name, target)
}

// sealState returns the edits that bind the request state of a result to the client.
func (g *Gateway) sealState(q *request, server *server, target string, f *resultInfo) (edits []wire.Edit) {
	if !f.asks() {
		return nil
	}
	for _, p := range f.state {
		if native, err := wire.Text(p.Value); err == nil {
			sealed := g.asks.States.Seal(ask.StateServer, native, q.From, server.Name, target)
			edits = append(edits, wire.Edit{At: p.At, Length: len(p.Value), With: wire.Quote(sealed)})
		}
	}
	return edits
}
