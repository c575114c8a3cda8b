package gateway

import (
	"context"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// needsTasks is the error for a client that uses tasks but does not declare the extension.
var needsTasks = wire.ErrorObject(wire.MissingCapability, "the client does not declare the extension "+extensionTasks,
	[]byte(`{"requiredCapabilities":{"extensions":{"`+extensionTasks+`":{}}}}`))

// serveTask serves the Tasks extension. Calls checks that the task belongs to the client.
func (g *Gateway) serveTask(ctx context.Context, q *request) []byte {
	if !q.capabilities.tasks {
		return q.answerError(needsTasks)
	}
	id, err := wire.Text(wire.Member(q.Params, "taskId"))
	if err != nil || id == "" {
		return q.answerErrorf(wire.InvalidParams, `"taskId" is not a string`)
	}

	var result, failed jsontext.Value
	switch q.Method {
	case "tasks/cancel":
		result, failed = q.config().Calls.CancelTask(ctx, q.From, id)
	case "tasks/update": // no task waits for input
		if _, failed = q.config().Calls.Task(ctx, q.From, id); failed == nil {
			result = jsontext.Value(`{}`)
		}
	default:
		if result, failed = q.config().Calls.Task(ctx, q.From, id); failed == nil {
			result = deliverTask(result, id)
		}
	}

	if failed != nil {
		return q.answerError(failed)
	}

	return q.answerRawResult(g.withResultType(result))
}

// deliverTask returns a task in the form for its client.
func deliverTask(task jsontext.Value, id string) jsontext.Value {
	var edits []wire.Edit
	wire.ForEachMember(task, func(p wire.Piece) {
		if p.Name != "result" {
			return
		}
		run, _, _ := strings.Cut(id, ".")
		edits = append(edits, wire.Edit{At: p.At, Length: len(p.Value), With: Delivered(p.Value, run)})
	})
	return wire.Splice(task, nil, edits)
}

// Delivered returns the result of a call to a client that was not connected when the result
// arrived. It withholds results that ask for input, whatever is exposed: an answer would make the
// call again.
func Delivered(result jsontext.Value, run string) jsontext.Value {
	f := readResult(result, nil)
	switch {
	case !f.isObject:
		return withheldResult(CodeResultRefused, "the server's result cannot be used", run)
	case f.asksForInput():
		return withheldResult(CodeInputRefused, "the server asks for input, which a call that has waited cannot give",
			run)
	case f.kind != "complete":
		return withheldResult(CodeResultRefused, "the server answered with a kind of result that nobody asked for", run)
	}
	return f.rewrite(result, nil, false)
}
