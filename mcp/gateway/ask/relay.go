// Package ask carries questions of MCP servers to clients, and the answers back: sampling/createMessage, elicitation/create and roots/list.
//
// Servers of revisions with sessions send a question as a request ([Requests]). Servers of the stateless revision put it into a result of
// the type input_required, and the client repeats its request with the answers. Clients, too, know only one of these ways:
//
//	                  server with sessions          stateless server
//	client session    the request is relayed        [Relay.AskSession]: the gateway sends requests and repeats the call
//	stateless client  [Pending]: the gateway asks   the result is relayed; its requestState is bound to the client ([States])
//	                  in a result and goes on
//
// Whether a question may pass at all is decided by package gateway. This package records and masks what passes, and bounds what waits.
package ask

import (
	"context"
	"log/slog"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// Directions of messages.
const (
	ToServer = "to_server"
	ToClient = "to_client"
)

// AnswerTimeout bounds how long telling a server an answer may take.
const AnswerTimeout = 10 * time.Second

// MaxQuestions is how many questions of one request may be open.
const MaxQuestions = 64

// A Relay carries the questions of a gateway's servers.
type Relay struct {
	Table  *session.Table
	States *States
	Mask   func([]byte) []byte // removes the operator's secrets
	Log    *slog.Logger
	// Record records a message before it passes. If it returns an error, the message does not pass.
	Record func(ctx context.Context, client session.Identity, server, direction, method string, params jsontext.Value) error

	pending pendingTable
}

// A Server is the link with a server that asks.
type Server interface {
	ServerName() string
	// Answer answers the server's request with an id.
	Answer(ctx context.Context, id, result, failed jsontext.Value) error
	// Serves reports whether the link still belongs to a pending request. On another request's link the same id is another question.
	Serves(*Pending) bool
	// Notify sends a notification.
	Notify(ctx context.Context, method string, params []byte) error
}

// Errors that answer questions.
var (
	NotOffered       = wire.ErrorObject(wire.MethodNotFound, "the client does not offer this", nil)
	NotRecorded      = wire.ErrorObject(wire.InternalError, "it could not be recorded, so it was not passed on", nil)
	TooManyQuestions = wire.ErrorObject(wire.InternalError, "the client has not answered what it was asked before", nil)
)

// Question returns the method and the params of a question in a result.
func Question(question []byte) (method string, params jsontext.Value) {
	wire.Each(question, func(p wire.Piece) {
		switch p.Name {
		case "method":
			method, _ = wire.Text(p.Value)
		case "params":
			params = p.Value
		}
	})
	return method, params
}

// NewQuestion returns a question of a result, without the id of an elicitation by URL, which revision 2026-07-28 removed.
func NewQuestion(method string, params jsontext.Value) jsontext.Value {
	if params == nil { // some clients need params
		params = jsontext.Value(`{}`)
	}
	if method == "elicitation/create" && hasMember(params, elicitationID) {
		if without, err := wire.Set(params, elicitationID, nil); err == nil {
			params = without
		}
	}
	var b wire.Object
	b.Add("method", wire.Quote(method))
	b.Add("params", params)
	return b.Done()
}

// InputRequired returns the result that asks a stateless client questions.
func InputRequired(questions jsontext.Value, state string) jsontext.Value {
	var b wire.Object
	b.Add("resultType", []byte(`"input_required"`))
	b.Add("inputRequests", questions)
	b.Add("requestState", wire.Quote(state))
	return b.Done()
}
