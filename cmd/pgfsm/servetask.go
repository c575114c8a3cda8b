package main

import (
	"context"
	"crypto/subtle"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway"
	"pgfsm/mcp/wire"
	"pgfsm/policy/canonical"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// Tasks are held calls as the extension io.modelcontextprotocol/tasks (2026-07-28, SEP-2663) knows them. They have no state
// of their own: what the ledger says of the run is the task's state, so a task outlives every process.

// The states of a task.
const (
	taskWorking   = "working"
	taskCompleted = "completed"
)

// handleDigits of the binding's digest go into a task's id: 128 bits.
const handleDigits = 32

// taskID names the task of a held run. Who knows the run's id alone, from a log or a list, does not know it: the rest is made
// of what approvers are asked about.
func taskID(run string, binding canonical.Digest) string {
	_, digits, _ := strings.Cut(string(canonical.Sum("task handle", []byte(run+"\n"+string(binding)))), ":")
	return run + "." + digits[:handleDigits]
}

// A task is how it stands: the members of the extension's Task, flat.
type task struct {
	Created string         `json:"createdAt"`
	Updated string         `json:"lastUpdatedAt"`
	Poll    int            `json:"pollIntervalMs"`
	Result  jsontext.Value `json:"result,omitzero"`
	Type    string         `json:"resultType"`
	Status  string         `json:"status"`
	Message string         `json:"statusMessage,omitempty"`
	ID      string         `json:"taskId"`
	TTL     *int64         `json:"ttlMs"` // null: as long as the ledger keeps it
}

func (g *gate) working(w heldCall) task {
	return task{
		Created: w.since, Updated: w.updated, Poll: askAgain * 1000, Status: taskWorking, ID: w.task,
		Message: g.waits(w),
	}
}

// created is the task in place of the result of the call.
func (t task) created() jsontext.Value {
	t.Type = "task"
	return canonical.MustSorted(t)
}

// standing is the task as the answer to who asks for it.
func (t task) standing() jsontext.Value {
	t.Type = "complete"
	return canonical.MustSorted(t)
}

var taskUnknown = wire.ErrorObject(wire.InvalidParams, "There is no such task.", nil)

// Task is how a task of the caller stands.
func (g *gate) Task(ctx context.Context, who gateway.Identity, id string) (result, failed jsontext.Value) {
	q, failed := g.taskOf(ctx, who, id)
	if failed != nil {
		return nil, failed
	}
	t := g.working(waitingRequest(&q))
	if q.Ended == "" {
		return t.standing(), nil
	}
	got, err := g.ledger.Ended(ctx, g.replayer, q.RunID)
	if err == nil { // it may be asked for again, but a repetition of the call is a new one from here on
		_, err = g.ledger.Deliver(ctx, q.RunID, ledger.ByTask)
	}
	if err != nil {
		g.log.WarnContext(ctx, "task", "run", q.RunID, "error", err.Error())
		return nil, wire.ErrorObject(wire.InternalError, "The ledger cannot say what became of the task.", nil)
	}
	answer := g.answer(got.Run, got.Outcome)
	if answer.Native {
		answer.Result = gateway.StripOwn(answer.Result)
	}
	t.Status, t.Message, t.Result = taskCompleted, "", answer.Result
	return t.standing(), nil
}

// CancelTask withdraws a call that waits: as far as it has not been decided yet. What was decided stands.
func (g *gate) CancelTask(ctx context.Context, who gateway.Identity, id string) (result, failed jsontext.Value) {
	q, failed := g.taskOf(ctx, who, id)
	if failed != nil {
		return nil, failed
	}
	if q.Ended == "" && q.Status == ledger.Pending {
		if err := g.ledger.Withdraw(ctx, q.RunID, who.Name, who.Token); err != nil {
			var r *ledger.Refusal
			if !errors.As(err, &r) { // a refusal: somebody was faster
				g.log.WarnContext(ctx, "task", "run", q.RunID, "error", err.Error())
				return nil, wire.ErrorObject(wire.InternalError, "The ledger does not take it that the call is withdrawn.", nil)
			}
		}
	}
	return jsontext.Value(`{"resultType":"complete"}`), nil
}

// taskOf finds the caller's task. One of somebody else's is none.
func (g *gate) taskOf(ctx context.Context, who gateway.Identity, id string) (q ledger.Request, failed jsontext.Value) {
	run, _, _ := strings.Cut(id, ".")
	if g.ledger == nil {
		return q, taskUnknown
	}
	q, err := g.request(ctx, run)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return q, taskUnknown
	case err != nil:
		return q, wire.ErrorObject(wire.InternalError, "The ledger cannot be read.", nil)
	case q.Kind != states.KindAgent || q.Binding == "" || q.Actor != who.Name:
		return q, taskUnknown
	}
	if subtle.ConstantTimeCompare([]byte(id), []byte(taskID(run, q.Binding))) != 1 {
		return q, taskUnknown
	}
	return q, nil
}
