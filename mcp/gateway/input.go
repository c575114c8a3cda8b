package gateway

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// Codes for results that a client does not get.
const (
	CodeInputRefused  = "input_refused"  // the server asks for input that the client may not or cannot give
	CodeResultRefused = "result_refused" // the server answered with an unsolicited type of result
)

// checkResult says why the client does not get a server's result; code is empty if it does. A
// result that asks for input passes to a stateless client if the operator exposes input_required
// and the kinds of input, and the client declares the capability.
func (q *request) checkResult(server *server, f *resultInfo) (code, why string) {
	switch {
	case f.kind != "complete" && f.kind != "input_required":
		return CodeResultRefused, "it answered with a kind of result that nobody asked for"
	case !f.asksForInput():
		return "", ""
	case !server.Expose.Includes(ExposeInputRequired):
		return CodeInputRefused, "it asks for input, and the operator does not expose input_required"
	case !q.stateless():
		return CodeInputRefused, "it asks for input in its result, which no client of revision " + q.Protocol +
			" can give"
	}

	for _, questions := range f.questions {
		readable := wire.ForEachMember(questions, func(p wire.Piece) {
			method, params := readQuestion(p.Value)
			row := methodOf(fromServer, method)
			if row == nil || row.notification || row.handler != byRelay || !server.Expose.Includes(row.needs) {
				code, why = CodeInputRefused, "it asks for input of a kind that the operator does not expose"
				return
			}
			if lacks := q.capabilities.undeclared(method, params); lacks != "" {
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

// readQuestion returns the method and the params of a question in a server's result.
func readQuestion(question []byte) (method string, params jsontext.Value) {
	wire.ForEachMember(question, func(p wire.Piece) {
		switch p.Name {
		case "method":
			method, _ = wire.Text(p.Value)
		case "params":
			params = p.Value
		}
	})
	return method, params
}

// inputRefused returns the error for a relayed request whose result the client does not get.
func inputRefused(server *server, code, why string) jsontext.Value {
	return wire.ErrorObject(wire.InternalError, "server "+server.Name+": "+why, wire.Single("code", wire.Quote(code)))
}

// clientInput is the input that a client sends with a repeated request. Missing members are nil.
type clientInput struct {
	responses jsontext.Value // inputResponses
	state     jsontext.Value // requestState
}

// readInput reads the input in the params of a request.
func readInput(params jsontext.Value) clientInput {
	return clientInput{
		responses: wire.NonNull(wire.Member(params, "inputResponses")),
		state:     wire.NonNull(wire.Member(params, "requestState")),
	}
}

// asObject returns the input as one object; nil if there is none.
func (in clientInput) asObject() jsontext.Value {
	var b wire.Object
	if in.responses != nil {
		b.Add("inputResponses", in.responses)
	}
	if in.state != nil {
		b.Add("requestState", in.state)
	}
	if len(b) == 0 {
		return nil
	}
	return b.Value()
}

// ofHeldCall reports whether the client repeats a call for which it was shown a URL.
func (in clientInput) ofHeldCall() bool {
	text, err := wire.Text(in.state)
	return in.state != nil && err == nil && strings.HasPrefix(text, heldState)
}

// codeShowsURL is the error code with which a server asks a client to show URLs and repeat its
// request (MCP 2025-11-25, elicitation).
const codeShowsURL = -32042

// relayError answers with the error of a server, unless that is an elicitation that may not pass.
func (q *request) relayError(server *server, failed jsontext.Value) []byte {
	shows := false
	wire.ForEachMember(failed, func(p wire.Piece) {
		code, err := strconv.ParseFloat(string(p.Value), 64)
		shows = shows || p.Name == "code" && err == nil && code == codeShowsURL
	})
	if !shows || server.Expose.Includes(ExposeElicitation) && q.capabilities.url {
		return q.answerError(wire.StripOwn(failed))
	}
	return q.answerError(inputRefused(server, CodeInputRefused,
		"it has people open a URL, and the operator does not expose elicitation, or the client does not declare it"))
}

const foreignState = "unknown requestState: another gateway issued it, or this one before a restart. Send it to the gateway that issued it, " +
	"or start again without it. First check whether the earlier call took effect."

// openState returns the server's own request state. The error object says why the server does not
// get the client's input.
func (q *request) openState(server *server, target string, in clientInput) (state, failed jsontext.Value) {
	switch {
	case in.responses == nil && in.state == nil:
		return nil, nil
	case !server.Expose.Includes(ExposeInputRequired):
		return nil, rpcError(wire.InvalidParams, "the operator does not expose input_required of server "+server.Name)
	case !q.stateless():
		return nil, rpcError(wire.InvalidParams, "revision "+q.Protocol+" has no inputResponses and no requestState")
	case in.state == nil:
		return nil, nil
	}

	text, err := wire.Text(in.state)
	if err != nil {
		return nil, rpcError(wire.InvalidParams, `"requestState" is not a string`)
	}
	native, ok := q.gateway.requestStates.openState(text, q.From, server.Name, target)
	if !ok {
		return nil, rpcError(wire.InvalidParams, foreignState)
	}
	return wire.Quote(native), nil
}

// sealState returns the edits that bind the request state of a result to the client.
func (q *request) sealState(server *server, target string, f *resultInfo) (edits []wire.Edit) {
	if !f.asksForInput() {
		return nil
	}
	for _, p := range f.state {
		if native, err := wire.Text(p.Value); err == nil {
			sealed := q.gateway.requestStates.sealState(native, q.From, server.Name, target)
			edits = append(edits, wire.Edit{At: p.At, Length: len(p.Value), With: wire.Quote(sealed)})
		}
	}
	return edits
}
