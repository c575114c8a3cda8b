package attack

import "pgfsm/eval"

// clusters are the attacks of a section in the form that [eval.Bootstrap] takes.
type clusters struct {
	pairs          []eval.Pair
	succeeded      [][]bool       // the successes by arm
	tasks, attacks map[string]int // numbers; looked up, never ranged over
}

func newClusters(arms int) *clusters {
	return &clusters{succeeded: make([][]bool, arms), tasks: make(map[string]int), attacks: make(map[string]int)}
}

// taskOf names a case's task as tasks are counted: by its unit, which all suites that have the task
// share. A task without calls is known by its suite and name.
func taskOf(j *judged) string {
	if u := j.units[0]; u.side == needs {
		return string(u.digest)
	}
	return j.c.Suite + "\x00" + j.c.Task
}

// addAttack adds an attack on a task.
func (c *clusters) addAttack(e entry) {
	c.pairs = append(c.pairs, eval.Pair{Task: numberOf(c.tasks, e.task),
		Attack: numberOf(c.attacks, e.c.Suite+"\x00"+e.c.Attack)})
	for i := range c.succeeded {
		c.succeeded[i] = append(c.succeeded[i], e.arms[i].outcomeText() == AllMade)
	}
}

func (c *clusters) computeIntervals() []eval.Interval { return eval.Bootstrap(c.pairs, c.succeeded) }

// numberOf numbers names in the order in which they are met.
func numberOf(names map[string]int, name string) int {
	n, ok := names[name]
	if !ok {
		n = len(names)
		names[name] = n
	}
	return n
}
