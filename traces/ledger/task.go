package ledger

import (
	"errors"
	"fmt"

	"pgfsm/policy"
)

// ErrForeignTask means that another counter counted the calls of a run's task. The ledger's count
// can then differ from the one that the gates judged.
var ErrForeignTask = errors.New("the calls of its task were not counted by this ledger, so nothing is called: name the task with ledger.Task")

// ErrTaskCalls means that a task has made too many calls to one tool to be counted.
var ErrTaskCalls = fmt.Errorf("the task has more than %d calls to the tool, and no more are counted: go on under another task", MaxCounted)

// NewTask returns the task with an id for a run of this ledger. The run reads the calls of the task
// later; see [RunRecorder.ReadHistory].
func NewTask(id string) *policy.Task {
	return &policy.Task{Calls: []policy.TaskCalls{}, ID: id, Ledger: true}
}

// taskCalls counts the calls to one tool that the runs of a task have made or may yet make,
// including those of pruned runs.
func taskCalls(r Reader, gone ledgerPruned, of taskCall) ([]policy.TaskCalls, error) {
	n := 0
	for _, err := range r.Runs(Filter{Task: of.Task, Server: of.Server, Tool: of.Tool, Counted: true,
		Limit: MaxCounted + 1}) {
		if err != nil {
			return nil, err
		}
		n++
	}
	if n > MaxCounted {
		return nil, fmt.Errorf("%w (task %q, %s %s)", ErrTaskCalls, of.Task, of.Server, of.Tool)
	}
	if n += pastCalls(gone.Tasks, of); n == 0 {
		return []policy.TaskCalls{}, nil
	}
	return []policy.TaskCalls{{Calls: min(n, policy.MaxGrantCalls), Server: of.Server, Tool: of.Tool}}, nil
}

// checkCountable returns an error for a task that the ledger does not count.
func checkCountable(task *policy.Task) error {
	if task != nil && !task.Ledger {
		return fmt.Errorf("%w (task %q)", ErrForeignTask, task.ID)
	}
	return nil
}
