package gateway

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// needsTasks is answered to a client that uses tasks and did not say that it can.
var needsTasks = wire.ErrorObject(wire.MissingCapability, "the client does not declare the extension "+extensionTasks,
	[]byte(`{"requiredCapabilities":{"extensions":{"`+extensionTasks+`":{}}}}`))

// task serves the Tasks extension: calls that wait for a person. Whose task it is, is for those to say who made it.
func (g *Gateway) task(ctx context.Context, q *request) []byte {
	if !q.can().tasks {
		return q.fail(needsTasks)
	}
	id, err := wire.Text(wire.Member(q.Params, "taskId"))
	if err != nil || id == "" {
		return q.refuse(wire.InvalidParams, `"taskId" is not a string`)
	}
	var result, failed jsontext.Value
	switch q.Method {
	case "tasks/cancel":
		result, failed = g.options.Calls.CancelTask(ctx, q.from, id)
	case "tasks/update": // there is nothing that a task here waits to be told
		if _, failed = g.options.Calls.Task(ctx, q.from, id); failed == nil {
			result = jsontext.Value(`{}`)
		}
	default:
		result, failed = g.options.Calls.Task(ctx, q.from, id)
	}
	if failed != nil {
		return q.fail(failed)
	}
	return q.splice(g.completed(result))
}
