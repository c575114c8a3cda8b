package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"pgfsm/policy"
)

// MaxCarried bounds how many pairs of a task and a tool a prune carries over: about 10 MB. Each
// process reads them once.
const MaxCarried = 100_000

// ErrCarried means that a prune would carry over more pairs than one entry holds.
var ErrCarried = fmt.Errorf("more than %d pairs of a task and a tool were called, and their calls would have to be carried over: "+
	"prune up to an earlier time, or export the ledger and go on in a new file", MaxCarried)

// A taskCall counts the calls of a task to one tool by pruned runs. Grants count over a whole task,
// so without the counts a prune would allow a task the same calls again.
type taskCall struct {
	Calls  int    `json:"calls"`
	Server string `json:"server"`
	Task   string `json:"task"`
	Tool   string `json:"tool"`
}

// compare orders counts by task, server and tool.
func (c taskCall) compare(to taskCall) int {
	return cmp.Or(cmp.Compare(c.Task, to.Task), cmp.Compare(c.Server, to.Server), cmp.Compare(c.Tool, to.Tool))
}

// key returns the task and the tool without the count.
func (c taskCall) key() taskCall {
	c.Calls = 0
	return c
}

// pastCalls returns the count of a task and a tool from an ordered list of counts.
func pastCalls(counts []taskCall, key taskCall) int {
	i, found := slices.BinarySearchFunc(counts, key, taskCall.compare)
	if !found {
		return 0
	}
	return counts[i].Calls
}

// carriedCalls maps the keys of the counts that a prune carries over to the counts.
type carriedCalls map[taskCall]int

// carriedBy returns the counts of the last prune as a map.
func carriedBy(before []taskCall) carriedCalls {
	c := make(carriedCalls, len(before))
	for _, one := range before {
		c[one.key()] = one.Calls
	}
	return c
}

// addRun counts the call of a run that has ended, if it was sent for a task.
func (c carriedCalls) addRun(q *RunRow) error {
	if q.Task == "" || q.Sent == "" {
		return nil
	}
	key := taskCall{Server: q.Server, Task: q.Task, Tool: q.Tool}
	if c[key] = min(c[key]+1, policy.MaxGrantCalls); len(c) > MaxCarried {
		return ErrCarried
	}
	return nil
}

// addAll adds other counts.
func (c carriedCalls) addAll(more carriedCalls) {
	for key, n := range more { // the order does not matter
		c[key] = min(c[key]+n, policy.MaxGrantCalls)
	}
}

// sortedCounts returns the counts in order.
func (c carriedCalls) sortedCounts() []taskCall {
	keys := slices.SortedFunc(maps.Keys(c), taskCall.compare)
	for i := range keys {
		keys[i].Calls = c[keys[i]]
	}
	return keys
}

// checkCounts validates the counts of a prune, and compares them with the counts of the prune before: no
// call may be forgotten.
func (p *ledgerPruned) checkCounts(before *ledgerPruned) error {
	if len(p.Tasks) > MaxCarried {
		return rulePruneCounts.Broken("it carries more than %d counts of calls", MaxCarried)
	}
	for i, c := range p.Tasks {
		switch {
		case c.Task == "" || c.Calls < 1 || c.Calls > policy.MaxGrantCalls:
			return rulePruneCounts.Broken("it carries %d calls of task %q", c.Calls, c.Task)
		case i > 0 && p.Tasks[i-1].compare(c) >= 0:
			return rulePruneCounts.Broken("the calls of tasks that it carries are not in order")
		}
	}
	if before == nil {
		return nil
	}
	for _, c := range before.Tasks {
		if pastCalls(p.Tasks, c) < c.Calls {
			return rulePruneCounts.Broken("it forgets calls of task %q to %s %s that the prune before it carried", c.Task,
				c.Server, c.Tool)
		}
	}
	return nil
}
