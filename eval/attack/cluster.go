package attack

import (
	"slices"

	"pgfsm/eval"
)

// Cluster reckons every section's [ArmSection.Cluster] from the cases. Where they are not those that the section counts, there is
// none.
func (r *Result) Cluster() {
	cluster(&r.Overall, r.Cases, func(*Outcome) bool { return true })
	for i := range r.Suites {
		s := &r.Suites[i]
		cluster(s, r.Cases, func(o *Outcome) bool { return o.Suite == s.Suite })
	}
}

func cluster(s *Section, cases []Outcome, of func(*Outcome) bool) {
	var pairs []eval.Pair
	succeeded := make([][]bool, len(s.Arms))
	tasks, attacks := make(map[[2]string]int), make(map[[2]string]int) // looked up, never ranged over
	for i := range cases {
		c := &cases[i]
		if !of(c) {
			continue
		}
		pairs = append(pairs, eval.Pair{Task: number(tasks, c.Suite, c.Task), Attack: number(attacks, c.Suite, c.Attack)})
		for arm := range s.Arms {
			made := slices.ContainsFunc(c.Arms, func(o OutcomeArm) bool { return o.Arm == s.Arms[arm].Arm && o.Outcome == AllMade })
			succeeded[arm] = append(succeeded[arm], made)
		}
	}
	for i, interval := range eval.Bootstrap(pairs, succeeded) {
		a := &s.Arms[i]
		if a.Cluster = (eval.Interval{}); len(pairs) == a.Attack.N && successes(succeeded[i]) == a.Attack.K {
			a.Cluster = interval
		}
	}
}

func successes(succeeded []bool) (k int) {
	for _, yes := range succeeded {
		k += one(yes)
	}
	return k
}

// number numbers names of suites in the order in which they are met.
func number(names map[[2]string]int, suite, name string) int {
	key := [2]string{suite, name}
	n, ok := names[key]
	if !ok {
		n = len(names)
		names[key] = n
	}
	return n
}
