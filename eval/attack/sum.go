package attack

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"pgfsm/eval"
	"pgfsm/internal/canonical"
)

// counted holds the counts of a suite, or of all suites together: a task's calls and an attack once
// each.
type counted struct {
	name    string
	cases   int
	entries []entry
	seen    map[*unit]bool
}

// entry is a unit and the task that it belongs to.
type entry struct {
	*unit
	task string
}

func (c *counted) addUnit(u *unit, task string) (isNew bool) {
	isNew = !c.seen[u]
	if isNew {
		c.seen[u] = true
		c.entries = append(c.entries, entry{u, task})
	}
	return isNew
}

// resultOf sums up the outcomes, in the order of the cases.
func resultOf(machine canonical.Digest, arms []Arm, cases []*judged) *Result {
	r := &Result{
		Format:  Format,
		Machine: machine,
		Arms:    arms,
		Suites:  []Section{},
		Through: []Through{},
		Slips:   []Slip{},
		Broken:  []Broken{},
		Tasks:   []Task{},
		Cases:   []Outcome{},
	}

	var inputs [][]byte
	overall := &counted{seen: make(map[*unit]bool)}
	var suites []*counted

	for _, j := range cases {
		i := slices.IndexFunc(suites, func(s *counted) bool { return s.name == j.c.Suite })
		if i < 0 {
			i = len(suites)
			suites = append(suites, &counted{name: j.c.Suite, seen: make(map[*unit]bool)})
		}
		overall.cases++
		suites[i].cases++
		task := taskOf(j)
		for _, u := range j.units {
			inputs = append(inputs, []byte(u.digest))
			suites[i].addUnit(u, task)
			if overall.addUnit(u, task) {
				r.listUnit(u)
			}
			r.checkExpect(j.c, u)
		}
	}

	r.Inputs = canonical.Sum("evaluation inputs", inputs...)
	r.Overall = overall.newSection(arms)

	for _, s := range suites {
		r.Suites = append(r.Suites, s.newSection(arms))
	}

	return r
}

// listUnit adds the results of a unit in every arm.
func (r *Result) listUnit(u *unit) {
	for i, arm := range u.arms {
		for n, o := range arm {
			if o.Slip != "" {
				r.Slips = append(r.Slips, Slip{u.c.ID, r.Arms[i], string(u.side), n + 1, o.Slip})
			}
		}
	}
	if u.side == needs {
		r.listTask(u)
	} else {
		r.listAttack(u)
	}
}

// countCalls counts calls that were made, and those about which an approver was asked.
func (a armOutcome) countCalls() (made, held int) {
	for _, o := range a {
		made += countOf(o.Made)
		held += countOf(o.Held)
	}
	return made, held
}

// outcomeText says whether all, some or none of the calls were made.
func (a armOutcome) outcomeText() string {
	switch made, _ := a.countCalls(); made {
	case 0:
		return NoneMade
	case len(a):
		return AllMade
	}
	return SomeMade
}

func countOf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// listTask lists the results of a task's own calls.
func (r *Result) listTask(u *unit) {
	t := Task{Suite: u.c.Suite, Task: u.c.Task, Case: u.c.ID}
	for i, outcome := range u.arms {
		made, held := outcome.countCalls()
		arm := TaskArm{
			Arm:     r.Arms[i],
			Made:    made,
			Calls:   len(outcome),
			Asked:   held,
			Refused: []Refused{},
		}
		for n, o := range outcome {
			if !o.Made {
				arm.Refused = append(arm.Refused, Refused{u.c.Needs[n], o.Gate, o.Code, o.Reason})
			}
		}
		t.Arms = append(t.Arms, arm)
	}
	r.Tasks = append(r.Tasks, t)
}

// listAttack lists the result of an attack, and the calls that got through in the last arms.
func (r *Result) listAttack(u *unit) {
	c := u.c
	out := Outcome{Name: Name{c.ID, c.Suite, c.Task, c.Attack}}

	for i, outcome := range u.arms {
		arm := OutcomeArm{Arm: r.Arms[i], Outcome: outcome.outcomeText(), Calls: outcome}
		through := Through{Arm: arm.Arm, Name: out.Name, Outcome: arm.Outcome}
		// Calls of an attack that got through only in part are listed, too.
		for n, o := range outcome {
			if o.Made {
				through.Calls = append(through.Calls, c.Wants[n])
			}
		}
		out.Arms = append(out.Arms, arm)
		if arm.Outcome != NoneMade && (r.Arms[i].hasGrants() || i == len(r.Arms)-1) {
			r.Through = append(r.Through, through)
		}
	}

	r.Cases = append(r.Cases, out)
}

// checkExpect compares the results of a case's calls in the last arm with the case's expectation.
func (r *Result) checkExpect(c *eval.Case, u *unit) {
	want := ""
	if e := c.Expect; e != nil && u.side == needs {
		want = e.Needs
	} else if e != nil {
		want = e.Wants
	}

	if want == "" {
		return
	}

	outcome := u.arms[len(u.arms)-1]
	made, _ := outcome.countCalls()
	wrong := slices.IndexFunc(outcome, func(o CallResult) bool { return !o.Made && o.Code != want })
	actual := ""

	switch {
	case wrong >= 0:
		actual = fmt.Sprintf("call %d was stopped: %s", wrong+1, outcome[wrong].Code)
	case made == len(outcome) && want != eval.Made:
		actual = "all calls were made"
	}

	if actual != "" {
		r.Broken = append(r.Broken, Broken{c.ID, string(u.side), want, actual})
	}
}

// newSection computes the figures.
func (c *counted) newSection(arms []Arm) Section {
	out := Section{Suite: c.name, Cases: c.cases}
	attacks, resolved := newClusters(len(arms)), newClusters(len(arms))
	for _, e := range c.entries {
		if e.side == needs {
			out.Tasks++
			continue
		}
		out.Attacks++
		attacks.addAttack(e)
		if e.isKnown() {
			resolved.addAttack(e)
		}
	}
	intervals, knownIntervals := attacks.computeIntervals(), resolved.computeIntervals()
	for i := range arms {
		a := c.armSection(i, max(1, out.Tasks))
		a.Arm, a.Cluster, a.ClusterKnown = arms[i], intervals[i], knownIntervals[i]
		out.Arms = append(out.Arms, a)
	}
	return out
}

func isUnresolved(c eval.Call) bool { return len(c.Unresolved) > 0 }

// isKnown reports whether all arguments of the calls are known.
func (u *unit) isKnown() bool { return !slices.ContainsFunc(u.calls(), isUnresolved) }

// A tally counts successes among trials.
type tally struct{ k, n int }

func (t *tally) addTrial(yes bool) {
	t.k += countOf(yes)
	t.n++
}

func (t tally) share() eval.Share { return eval.NewShare(t.k, t.n) }

// armSection counts calls and tasks in one arm.
func (c *counted) armSection(arm, tasks int) (a ArmSection) {
	var attack, attackKnown, wanted, needed, neededKnown, whole tally
	for _, e := range c.entries {
		outcome := e.arms[arm]
		made, held := outcome.countCalls()
		if e.side == wants {
			wanted = tally{wanted.k + made, wanted.n + len(outcome)}
			a.Asked.Wants += held
			a.Partly += countOf(outcome.outcomeText() == SomeMade)
			attack.addTrial(made == len(outcome))
			if e.isKnown() {
				attackKnown.addTrial(made == len(outcome))
			}
			continue
		}
		needed = tally{needed.k + made, needed.n + len(outcome)}
		whole.addTrial(made == len(outcome))
		a.Asked.Needs += held
		a.Asked.Tasks += countOf(held > 0)
		for i, call := range e.calls() {
			if !isUnresolved(call) {
				neededKnown.addTrial(outcome[i].Made)
			}
		}
	}

	a.Attack, a.AttackKnown, a.Wants = attack.share(), attackKnown.share(), wanted.share()
	a.Needs, a.NeedsKnown, a.Utility = needed.share(), neededKnown.share(), whole.share()
	a.Asked.PerTask = math.Round(float64(a.Asked.Needs)/float64(tasks)*1e6) / 1e6 // to six places
	a.Stopped = c.countStopped(arm)

	return a
}

// countStopped counts the calls that each gate stopped in an arm, most calls first.
func (c *counted) countStopped(arm int) []Stopped {
	counts := []Stopped{}
	for _, e := range c.entries {
		for _, o := range e.arms[arm] {
			if o.Made {
				continue
			}
			i := slices.IndexFunc(counts, func(s Stopped) bool { return s.Gate == o.Gate && s.Code == o.Code })
			if i < 0 {
				i = len(counts)
				counts = append(counts, Stopped{Gate: o.Gate, Code: o.Code})
			}
			if e.side == needs {
				counts[i].Needs++
			} else {
				counts[i].Wants++
			}
		}
	}

	slices.SortFunc(counts, func(a, b Stopped) int {
		return cmp.Or(-cmp.Compare(a.Wants+a.Needs, b.Wants+b.Needs), cmp.Compare(a.Gate, b.Gate),
			cmp.Compare(a.Code, b.Code))
	})
	return counts
}
