// Package serverrequest holds what the gateway needs to pass the questions of MCP servers to clients: sampling/createMessage,
// elicitation/create and roots/list.
//
// A server of a revision with sessions sends a question as a request, and the gateway relays it to the client's session. [Requests] holds
// those that wait for an answer. A stateless server puts its questions into a result of the type input_required, and the client repeats
// its request with the answers. [States] binds the requestState of such a result to the client.
//
// A question passes only within one era: [Capabilities] of a client of the other era are not declared to the server.
// Package gateway decides whether a question passes.
package serverrequest

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// AnswerTimeout bounds the time for sending an answer to a server.
const AnswerTimeout = 10 * time.Second

// Errors that answer questions.
var (
	NotOffered       = wire.ErrorObject(wire.MethodNotFound, "the client does not offer this", nil)
	NotRecorded      = wire.ErrorObject(wire.InternalError, "it could not be recorded, so it was not passed on", nil)
	TooManyQuestions = wire.ErrorObject(wire.InternalError, "the client has not answered what it was asked before", nil)
)

// ReadQuestion returns the method and the params of a question in a server's result.
func ReadQuestion(question []byte) (method string, params jsontext.Value) {
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

// InputRequired returns the result that asks a stateless client one question.
func InputRequired(name, method string, params jsontext.Value, state string) jsontext.Value {
	var question wire.Object
	question.Add("method", wire.Quote(method))
	question.Add("params", params)

	var result wire.Object
	result.Add("resultType", []byte(`"input_required"`))
	result.Add("inputRequests", wire.Single(name, question.Value()))
	result.Add("requestState", wire.Quote(state))
	return result.Value()
}
