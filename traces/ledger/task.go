package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"pgfsm/policy"
)

// ErrTaskMoved means that the calls of a task are not those that the run was judged by.
var ErrTaskMoved = errors.New("another run of the task was faster; nothing was called, and the run can be made again")

// Task returns a task with the calls that its runs have made or may yet make: those that were sent, and those that are held
// or under way. A run that goes by it holds or sends its own call only if they are the same then.
func (l *Ledger) Task(ctx context.Context, id string) (*policy.Task, error) {
	task := &policy.Task{ID: id}
	err := l.View(ctx, func(r Reader) (err error) {
		task.Calls, err = taskCalls(r, id, "", "")
		return err
	})
	return task, err
}

// taskCalls counts the calls of a task, by server and tool, or those of one tool alone. A count goes no higher than any
// grant asks for.
func taskCalls(r Reader, id, server, tool string) ([]policy.TaskCalls, error) {
	calls := []policy.TaskCalls{}
	for q, err := range r.Requests(Filter{Task: id, Server: server, Tool: tool, Counted: true}) {
		if err != nil {
			return nil, err
		}
		if q.Tool == "" {
			continue
		}
		i, there := slices.BinarySearchFunc(calls, q, func(c policy.TaskCalls, q Request) int {
			return cmp.Or(cmp.Compare(c.Server, q.Server), cmp.Compare(c.Tool, q.Tool))
		})
		if !there {
			calls = slices.Insert(calls, i, policy.TaskCalls{Server: q.Server, Tool: q.Tool})
		}
		calls[i].Calls = min(calls[i].Calls+1, policy.MaxGrantCalls)
	}
	return calls, nil
}

// counted refuses to hold or send the call of a run whose task has made other calls to the tool by now than the run was
// judged by: so of two runs that would take the last call of a grant only one does. It is called where the run is not in
// the ledger yet, so that its own call is not among them.
func (r *Run) counted(b *batch) error {
	task, f := r.header.Request.Task, r.run.Facts()
	if task == nil || f.Validated == nil || f.Held == nil && f.Dispatched == nil {
		return nil
	}
	server, tool := f.Validated.Server, f.Validated.Tool
	now, err := taskCalls(b, task.ID, server, tool)
	if err != nil {
		return err
	}
	before := slices.DeleteFunc(slices.Clone(task.Calls), func(c policy.TaskCalls) bool { return c.Server != server || c.Tool != tool })
	if !slices.Equal(now, before) {
		return fmt.Errorf("%w (task %q, %s %s)", ErrTaskMoved, task.ID, server, tool)
	}
	return nil
}
