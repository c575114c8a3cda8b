package lint

import (
	"slices"

	"pgfsm/policy/condition"
)

// Bounds of the search for a way that no policy above decides. Beyond them a policy counts as reached.
const (
	maxBeside     = 64      // policies above that are looked at together; further ones are left out
	maxOwnClasses = 1 << 16 // steps of automata for the texts of one name, for one policy
	maxOwnWays    = 1 << 14 // judgements of one policy by one way, for one policy
	maxWays       = 1 << 23 // for all policies
)

// A search looks for a way in which the subject of a model reaches a goal and nothing above has decided.
type search struct {
	*model
	goal  func(*entry, way) condition.Outcomes
	order []int // the variables, in the order in which they are given values
	used  []bool
	left  int
}

// never reports that there is no such way, and who decides in its place.
func (m *model) never(goal func(*entry, way) condition.Outcomes, ways *int) (by []*entry, never bool) {
	s := &search{model: m, goal: goal, used: make([]bool, len(m.policies)), left: min(maxOwnWays, *ways)}
	before := s.left
	for _, e := range append([]*entry{m.subject}, m.policies...) {
		s.want(e)
	}
	found := s.find(m.nothingGiven(), 0)
	*ways -= before - s.left
	if found {
		return nil, false
	}
	for i, used := range s.used {
		if used {
			by = append(by, m.policies[i])
		}
	}
	return by, true
}

// want puts the variables of a policy behind those that are in the order.
func (s *search) want(e *entry) {
	add := func(t *test) {
		if !slices.Contains(s.order, t.variable) {
			s.order = append(s.order, t.variable)
		}
	}
	for i, of := range [...]func(*entry) *pattern{toolOf, serverOf, envOf} {
		if p := of(e); !p.any {
			add(s.globs[i][p])
		}
	}
	for _, c := range e.conditions() {
		c.study.formula.Atoms(func(a *condition.Atom) {
			if a.Fixed == 0 {
				add(s.tests[a.Key])
			}
		})
	}
}

// find reports whether there is a way from here, or may be.
func (s *search) find(w way, depth int) bool {
	goal := s.goal(s.subject, w)
	if goal&canTrue == 0 {
		return false
	}
	open := goal != canTrue
	for i, p := range s.policies {
		if s.left--; s.left < 0 {
			return true
		}
		switch s.decides(p, w) {
		case canTrue:
			s.used[i] = true
			return false
		case canFalse:
		default:
			open = true
		}
	}
	if !open || depth == len(s.order) {
		return true
	}
	v := s.order[depth]
	for value := range s.variables[v].size {
		if w[v] = value; s.find(w, depth+1) {
			return true
		}
	}
	w[v] = -1
	return false
}
