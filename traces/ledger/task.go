package ledger

import (
	"fmt"

	"pgfsm/policy"
)

// ErrTaskCalls means that a task has made too many calls to one tool to be counted.
var ErrTaskCalls = fmt.Errorf("the task has more than %d calls to the tool, and no more are counted: go on under another task", MaxCounted)

// taskCalls counts the calls to one tool that the runs of a task have made or may yet make,
// including those of pruned runs.
func taskCalls(r Reader, pruned []taskCall, of taskCall) ([]policy.TaskCalls, error) {
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
	if n += pastCalls(pruned, of); n == 0 {
		return []policy.TaskCalls{}, nil
	}
	return []policy.TaskCalls{{Calls: min(n, policy.MaxGrantCalls), Server: of.Server, Tool: of.Tool}}, nil
}
