package runner

import (
	"context"
	"crypto/subtle"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/mcp/gateway"
	"pgfsm/mcp/wire"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// Tasks present held calls in the form of the extension io.modelcontextprotocol/tasks (2026-07-28,
// SEP-2663). A task has no state of its own: its state is that of the run in the ledger, so a task
// survives every process.

// The states of a task.
const (
	taskWorking   = "working"
	taskCompleted = "completed"
)

// handleDigits is the number of a digest's hex digits in a task's id: 128 bits.
const handleDigits = 32

// taskID returns the id of a held run's task. The run's id alone, from a log or a list, does not
// give access to the task: the rest of the task's id is derived from the binding that approvers
// decide about.
func taskID(run string, binding canonical.Digest) string {
	_, digits, _ := strings.Cut(string(canonical.Sum("task handle", []byte(run+"\n"+string(binding)))), ":")
	return run + "." + digits[:handleDigits]
}

// A task has the members of the extension's Task, flat.
type task struct {
	Created string         `json:"createdAt"`
	Updated string         `json:"lastUpdatedAt"`
	Poll    int            `json:"pollIntervalMs"`
	Result  jsontext.Value `json:"result,omitzero"`
	Type    string         `json:"resultType"`
	Status  string         `json:"status"`
	Message string         `json:"statusMessage,omitempty"`
	ID      string         `json:"taskId"`
	TTL     *int64         `json:"ttlMs"` // null: no limit but the ledger's retention
}

func (r *ConfiguredRunner) workingTask(w heldCall) task {
	return task{
		Created: w.since,
		Updated: w.updated,
		Poll:    retryAfter * 1000,
		Status:  taskWorking,
		ID:      w.task,
		Message: r.waitingNotice(w),
	}
}

// asResult returns the task as the result of the call.
func (t task) asResult() jsontext.Value {
	t.Type = "task"
	return canonical.MustSorted(t)
}

// asPollAnswer returns the task as the answer to a poll.
func (t task) asPollAnswer() jsontext.Value {
	t.Type = "complete"
	return canonical.MustSorted(t)
}

var taskUnknown = wire.ErrorObject(wire.InvalidParams, "There is no such task.", nil)

// Task answers a poll of a caller's task.
func (r *ConfiguredRunner) Task(ctx context.Context, caller gateway.Identity, id string) (result,
	failed jsontext.Value) {
	q, failed := r.taskOf(ctx, caller, id)
	if failed != nil {
		return nil, failed
	}
	t := r.workingTask(heldRequest(&q))
	if q.Ended == "" {
		return t.asPollAnswer(), nil
	}

	// The outcome is read from the record, so that every process gives the same answer.
	ended, err := r.runner.endedRun(ctx, q.RunID)
	if err != nil {
		return nil, r.unreadableOutcome(ctx, q.RunID, err)
	}
	// Later polls still work, but a repetition of the call is now a new call.
	if _, err = r.runner.options.Ledger.Deliver(ctx, q.RunID, ledger.ByTask); err != nil {
		return nil, r.unreadableOutcome(ctx, q.RunID, err)
	}

	answer := r.answerEnded(ended, nil)
	if answer.Native {
		answer.Result = wire.StripOwn(answer.Result)
	}

	t.Status, t.Message, t.Result = taskCompleted, "", answer.Result
	return t.asPollAnswer(), nil
}

// unreadableOutcome logs why the outcome of a task cannot be read, and returns the error for its
// client.
func (r *ConfiguredRunner) unreadableOutcome(ctx context.Context, run string, cause error) jsontext.Value {
	r.runner.log.WarnContext(ctx, "task", "run", run, "error", cause.Error())
	return wire.ErrorObject(wire.InternalError, "The outcome of the task cannot be read from the ledger.", nil)
}

// CancelTask withdraws a call that waits for approval. A call that was decided is not cancelled.
func (r *ConfiguredRunner) CancelTask(ctx context.Context, caller gateway.Identity, id string) (result,
	failed jsontext.Value) {
	q, failed := r.taskOf(ctx, caller, id)
	if failed != nil {
		return nil, failed
	}
	if q.Ended == "" && q.Status == ledger.Pending {
		if err := r.runner.options.Ledger.Withdraw(ctx, q.RunID, callerOf(caller)); err != nil {
			var refused *ledger.Refusal // set if the call was decided meanwhile
			if !errors.As(err, &refused) {
				r.runner.log.WarnContext(ctx, "task", "run", q.RunID, "error", err.Error())
				return nil, wire.ErrorObject(wire.InternalError,
					"The ledger cannot record that the call is withdrawn.", nil)
			}
		}
	}
	return jsontext.Value(`{"resultType":"complete"}`), nil
}

// taskOf finds a caller's task. It reports tasks of other callers as unknown.
func (r *ConfiguredRunner) taskOf(ctx context.Context, caller gateway.Identity, id string) (q ledger.RunRow,
	failed jsontext.Value) {
	run, _, _ := strings.Cut(id, ".")
	if r.runner.options.Ledger == nil {
		return q, taskUnknown
	}
	q, err := r.runner.readRequest(ctx, run)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return q, taskUnknown
	case err != nil:
		return q, wire.ErrorObject(wire.InternalError, "The ledger cannot be read.", nil)
	case q.Kind != states.KindAgent || q.Binding == "" || !callerOf(caller).IsRequester(&q):
		return q, taskUnknown
	}
	if subtle.ConstantTimeCompare([]byte(id), []byte(taskID(run, q.Binding))) != 1 {
		return q, taskUnknown
	}
	return q, nil
}
