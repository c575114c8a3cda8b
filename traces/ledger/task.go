package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"pgfsm/policy"
)

// ErrTaskMoved means that the calls of a task are not those that the run was judged by.
var ErrTaskMoved = errors.New("another run of the task was faster; nothing was called, and the run can be made again")

// Task is the task of an id as a run of this ledger has it: its calls are read when the run comes to its own; see
// [Run.ReadHistory].
func Task(id string) *policy.Task {
	return &policy.Task{Calls: []policy.TaskCalls{}, ID: id, Ledger: true}
}

// taskCalls counts the calls that the runs of a task have made or may yet make, by server and tool, or those of one tool
// alone, and without those of one run. A count goes no higher than any grant asks for.
func taskCalls(r Reader, id, server, tool, but string) ([]policy.TaskCalls, error) {
	calls := []policy.TaskCalls{}
	for q, err := range r.Requests(Filter{Task: id, Server: server, Tool: tool, Counted: true}) {
		if err != nil {
			return nil, err
		}
		if q.Tool == "" || q.RunID == but {
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

// counted refuses to hold or send the call of a run that was begun with the calls of its task, as they were counted elsewhere,
// if these are not what the ledger counts: so of two runs that would take the last call of a grant only one does.
func (r *Run) counted(b *batch) error {
	task, f := r.header.Request.Task, r.run.Facts()
	if task == nil || task.Ledger || f.Validated == nil || f.Held == nil && f.Dispatched == nil {
		return nil
	}
	server, tool := f.Validated.Server, f.Validated.Tool
	now, err := taskCalls(b, task.ID, server, tool, r.header.RunID)
	if err != nil {
		return err
	}
	before := slices.DeleteFunc(slices.Clone(task.Calls), func(c policy.TaskCalls) bool { return c.Server != server || c.Tool != tool })
	if !slices.Equal(now, before) {
		return fmt.Errorf("%w (task %q, %s %s)", ErrTaskMoved, task.ID, server, tool)
	}
	return nil
}
