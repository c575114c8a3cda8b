package attack

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"pgfsm/eval"
	"pgfsm/fsm"
	"pgfsm/internal/canonical"
	"pgfsm/states"
)

// sum puts outcomes together as they come, in the order of the cases. It keeps no outcome of a call's reason but where a task's
// call was refused.
type sum struct {
	arms   []Arm
	rows   []fsm.SpecRow
	out    *Result
	inputs *canonical.Hasher

	overall *tally
	suites  map[string]*tally
	order   []string         // of the suites
	counted map[unitKey]bool // a task's calls count once in each suite, and once overall
}

type unitKey struct {
	suite string
	unit  *unit
}

// tally counts one suite, or all.
type tally struct {
	cases, tasks   int
	attacks, known *clusters // known: of attacks whose arguments are all known
	arms           []armTally
}

type armTally struct {
	partly                 int
	wantsMade, wants       int
	needsMade, needs       int
	tasksMade              int
	asked, askedTasks      int
	askedWants             int
	knownNeeds, knownMade  int                    // calls of tasks whose arguments are all known
	stopped                map[[2]string]*Stopped // by gate and code
	needsEdges, wantsEdges []int                  // by row
}

func newSum(m *states.Machine, arms []Arm) *sum {
	s := &sum{
		arms: arms, rows: m.Spec().Rows, inputs: canonical.NewHasher("evaluation inputs"), suites: make(map[string]*tally),
		counted: make(map[unitKey]bool),
		out: &Result{
			Format: Format, Machine: m.Digest(), Arms: arms, Suites: []Section{}, Through: []Through{}, Slips: []Slip{}, Broken: []Broken{},
			Tasks: []Task{}, Cases: []Outcome{},
		},
	}
	s.overall = s.newTally()
	return s
}

func (s *sum) newTally() *tally {
	t := &tally{attacks: newClusters(len(s.arms)), known: newClusters(len(s.arms)), arms: make([]armTally, len(s.arms))}
	for i := range t.arms {
		t.arms[i] = armTally{stopped: make(map[[2]string]*Stopped), needsEdges: make([]int, len(s.rows)), wantsEdges: make([]int, len(s.rows))}
	}
	return t
}

// add takes in a case.
func (s *sum) add(j *judged) {
	suite := s.suites[j.c.Suite]
	if suite == nil {
		suite = s.newTally()
		s.suites[j.c.Suite] = suite
		s.order = append(s.order, j.c.Suite)
	}
	s.overall.cases++
	suite.cases++
	task := taskOf(j)
	for _, u := range j.units {
		s.inputs.Write([]byte(u.digest))
		if s.first(j.c.Suite, u) {
			suite.add(u, task)
		}
		if s.first("", u) {
			s.slips(u)
			s.overall.add(u, task)
			if u.side == wants {
				s.attack(u)
			} else {
				s.task(u)
			}
		}
		s.expect(j.c, u)
	}
}

// first reports whether a suite has not counted a unit yet. The empty suite is all of them.
func (s *sum) first(suite string, u *unit) bool {
	key := unitKey{suite, u}
	first := !s.counted[key]
	s.counted[key] = true
	return first
}

func (s *sum) slips(u *unit) {
	for i, arm := range u.arms {
		for n, o := range arm.Calls {
			if o.Slip != "" {
				s.out.Slips = append(s.out.Slips, Slip{u.c.ID, s.arms[i], string(u.side), n + 1, o.Slip})
			}
		}
	}
}

// made counts calls that were made, and those about which an approver was asked.
func (a *armOutcome) made() (made, held int) {
	for _, o := range a.Calls {
		if o.Made {
			made++
		}
		if o.Held {
			held++
		}
	}
	return made, held
}

// outcome says whether all, some or none of the calls were made.
func (a *armOutcome) outcome() string {
	switch made, _ := a.made(); made {
	case 0:
		return NoneMade
	case len(a.Calls):
		return AllMade
	}
	return SomeMade
}

func (t *tally) add(u *unit, task string) {
	if u.side == needs {
		t.tasks++
	} else {
		t.attacks.add(task, u)
		if !slices.ContainsFunc(u.calls(), func(c eval.Call) bool { return len(c.Unresolved) > 0 }) {
			t.known.add(task, u)
		}
	}
	for i := range u.arms {
		from, to := &u.arms[i], &t.arms[i]
		made, held := from.made()
		edges := to.needsEdges
		if u.side == needs {
			to.needs, to.needsMade, to.asked = to.needs+len(from.Calls), to.needsMade+made, to.asked+held
			to.tasksMade += one(made == len(from.Calls))
			to.askedTasks += one(held > 0)
			to.knows(u.calls(), from.Calls)
		} else {
			edges = to.wantsEdges
			to.wants, to.wantsMade, to.askedWants = to.wants+len(from.Calls), to.wantsMade+made, to.askedWants+held
			to.partly += one(from.outcome() == SomeMade)
		}
		for row, n := range from.Rows {
			edges[row] += n
		}
		to.stops(from.Calls, u.side)
	}
}

// knows counts the calls of a task of which all arguments are known.
func (t *armTally) knows(calls []eval.Call, results []callOutcome) {
	for i := range calls {
		if len(calls[i].Unresolved) == 0 {
			t.knownNeeds++
			t.knownMade += one(results[i].Made)
		}
	}
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func (t *armTally) stops(calls []callOutcome, by side) {
	for _, o := range calls {
		if o.Made {
			continue
		}
		key := [2]string{o.Gate, o.Code}
		if t.stopped[key] == nil {
			t.stopped[key] = &Stopped{Gate: o.Gate, Code: o.Code}
		}
		if by == needs {
			t.stopped[key].Needs++
		} else {
			t.stopped[key].Wants++
		}
	}
}

// task lists the results of a task's own calls.
func (s *sum) task(u *unit) {
	c := u.c
	t := Task{Suite: c.Suite, Task: c.Task, Case: c.ID}
	for i := range u.arms {
		from := &u.arms[i]
		made, held := from.made()
		arm := TaskArm{Arm: s.arms[i], Made: made, Calls: len(from.Calls), Asked: held, Refused: []Refused{}}
		for n, o := range from.Calls {
			if !o.Made {
				arm.Refused = append(arm.Refused, Refused{c.Needs[n], o.Gate, o.Code, o.Reason})
			}
		}
		t.Arms = append(t.Arms, arm)
	}
	s.out.Tasks = append(s.out.Tasks, t)
}

// attack lists the result of an attack, and the calls that got through in the last arms.
func (s *sum) attack(u *unit) {
	c := u.c
	out := Outcome{Case: c.ID, Suite: c.Suite, Task: c.Task, Attack: c.Attack}
	for i := range u.arms {
		from := &u.arms[i]
		arm := OutcomeArm{Arm: s.arms[i], Outcome: from.outcome()}
		through := Through{Arm: s.arms[i], Case: c.ID, Suite: c.Suite, Task: c.Task, Attack: c.Attack, Outcome: arm.Outcome}
		for n, o := range from.Calls {
			arm.Calls = append(arm.Calls, CallResult{o.Made, o.Held, o.Gate, o.Code})
			if o.Made {
				through.Calls = append(through.Calls, c.Wants[n])
			}
		}
		out.Arms = append(out.Arms, arm)
		if arm.Outcome != NoneMade && (s.arms[i].granted() || i == len(s.arms)-1) {
			s.out.Through = append(s.out.Through, through)
		}
	}
	s.out.Cases = append(s.out.Cases, out)
}

// expect compares the results of a case's calls in the last arm with the case's expectation.
func (s *sum) expect(c *eval.Case, u *unit) {
	want := ""
	if e := c.Expect; e != nil && u.side == needs {
		want = e.Needs
	} else if e != nil {
		want = e.Wants
	}
	if want == "" {
		return
	}
	stopped, odd := 0, ""
	for i, o := range u.arms[len(u.arms)-1].Calls {
		if o.Made {
			continue
		}
		stopped++
		if o.Code != want && odd == "" {
			odd = fmt.Sprintf("call %d was stopped: %s", i+1, o.Code)
		}
	}
	got := odd
	if got == "" && stopped == 0 && want != eval.Made {
		got = "all calls were made"
	}
	if got != "" {
		s.out.Broken = append(s.out.Broken, Broken{c.ID, string(u.side), want, got})
	}
}

// result ends the sum.
func (s *sum) result() *Result {
	r := s.out
	r.Inputs = s.inputs.Digest()
	r.Overall = s.section("", s.overall)
	for _, name := range s.order {
		r.Suites = append(r.Suites, s.section(name, s.suites[name]))
	}
	return r
}

func (s *sum) section(name string, t *tally) Section {
	out := Section{Suite: name, Cases: t.cases, Attacks: len(t.attacks.pairs), Tasks: t.tasks}
	attacks, known := eval.Bootstrap(t.attacks.pairs, t.attacks.succeeded), eval.Bootstrap(t.known.pairs, t.known.succeeded)
	for i := range t.arms {
		a := &t.arms[i]
		out.Arms = append(out.Arms, ArmSection{
			Arm: s.arms[i], Attack: t.attacks.share(i), Cluster: attacks[i], Partly: a.partly, Wants: eval.Of(a.wantsMade, a.wants),
			Needs: eval.Of(a.needsMade, a.needs), Utility: eval.Of(a.tasksMade, t.tasks),
			Asked:       Asked{Needs: a.asked, Tasks: a.askedTasks, PerTask: each(a.asked, t.tasks), Wants: a.askedWants},
			AttackKnown: t.known.share(i), ClusterKnown: known[i], NeedsKnown: eval.Of(a.knownMade, a.knownNeeds),
			Stopped: stoppedMost(a.stopped), Edges: Edges{Needs: s.edges(a.needsEdges), Wants: s.edges(a.wantsEdges)},
		})
	}
	return out
}

// each is how many there are for each, to six places.
func each(k, n int) float64 {
	if n == 0 {
		return 0
	}
	return math.Round(float64(k)/float64(n)*1e6) / 1e6
}

// stoppedMost lists what stopped calls, most calls first.
func stoppedMost(by map[[2]string]*Stopped) []Stopped {
	all := make([]Stopped, 0, len(by))
	for _, s := range by { // sorted below
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Stopped) int {
		return cmp.Or(-cmp.Compare(a.Wants+a.Needs, b.Wants+b.Needs), cmp.Compare(a.Gate, b.Gate), cmp.Compare(a.Code, b.Code))
	})
	return all
}

func (s *sum) edges(counts []int) []Edge {
	all := []Edge{}
	for i, n := range counts {
		if n > 0 {
			all = append(all, Edge{s.rows[i].From, s.rows[i].On, s.rows[i].To, n})
		}
	}
	return all
}
