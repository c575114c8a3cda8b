package lint

import (
	"slices"

	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
)

// A model is some policies as formulas over variables, each of which has a few values. Every call that the globs of its
// subject fit is one way to give each variable a value. There may be ways that are no call, since tests that are not
// understood count as independent of each other; so what holds for every way holds for every call.
//
// The names of server, tool and env are those that a configuration can have, which are shorter than
// [condition.MaxName].
type model struct {
	subject   *entry
	policies  []*entry // those beside it, in their order
	variables []*variable
	index     map[string]int
	tests     map[string]*test // of conditions, by key
	globs     [3]map[*pattern]*test
	points    []level // one score of each class that the conditions tell apart, without levels
	levels    []level // of the variable of the risk, if there is one
}

// A variable is something of a call that conditions ask for.
type variable struct {
	name string // "tool", …; the key of a test that is not understood
	size int    // its values are 0 to size-1
	sets []*texts
}

// A test is what a condition, or a glob, asks of one variable.
type test struct {
	variable int
	answers  []condition.Outcomes // by value
	any      condition.Outcomes   // all of them together
}

// dimensions are the names that globs are about, as in [candidate].how.
var dimensions = [3]string{"tool", "server", "env"}

// riskVariable is the one variable for mode and score where a model has levels of risk.
const riskVariable = "risk"

// newModel returns false if there is too much to go through.
func newModel(subject *entry, beside []*entry, levels []level, work *int) (*model, bool) {
	m := &model{subject: subject, policies: beside, index: map[string]int{}, tests: map[string]*test{}, levels: levels}
	all := append([]*entry{subject}, beside...)
	for i, of := range [...]func(*entry) *pattern{toolOf, serverOf, envOf} {
		m.globs[i] = map[*pattern]*test{}
		for _, e := range all {
			if p := of(e); !p.any {
				m.set(dimensions[i], &texts{glob: p})
			}
		}
	}
	for _, e := range all {
		for _, c := range e.conditions() {
			c.study.formula.Atoms(func(a *condition.Atom) {
				for _, t := range a.Texts {
					if levels == nil || a.Name != "risk.mode" {
						m.set(a.Name, &texts{asks: t})
					}
				}
			})
		}
	}
	if levels == nil {
		m.points = scores(all)
	}
	own := map[string]*pattern{dimensions[0]: subject.tool, dimensions[1]: subject.server, dimensions[2]: subject.env}
	for i, v := range m.variables { // those of texts, so far
		p := own[v.name]
		named := p != nil
		if !named {
			p = anything
		}
		classes, ok := classesWithin(p, v.sets, work)
		if !ok {
			return nil, false
		}
		m.texts(i, classes, !named)
	}
	for _, e := range all {
		for _, c := range e.conditions() {
			c.study.formula.Atoms(m.add)
		}
	}
	return m, true
}

// anything matches every text.
var anything = newPatterns().of("*")

// set adds a set of texts that the values of a variable have to tell apart.
func (m *model) set(name string, t *texts) {
	v := m.variables[m.variable(name, 0)]
	if !slices.ContainsFunc(v.sets, func(had *texts) bool { return *had == *t }) {
		v.sets = append(v.sets, t)
	}
}

// variable returns the number of a variable.
func (m *model) variable(name string, size int) int {
	i, ok := m.index[name]
	if !ok {
		i = len(m.variables)
		m.index[name] = i
		m.variables = append(m.variables, &variable{name: name, size: size})
	}
	return i
}

// texts makes the tests of a variable whose values are classes of texts. With perhapsLong the last value is a text that
// is too long for a condition.
func (m *model) texts(i int, classes []class, perhapsLong bool) {
	v := m.variables[i]
	v.size = len(classes)
	for k, t := range v.sets {
		made := &test{variable: i}
		for _, c := range classes {
			switch {
			case t.glob == nil && c.long:
				made.add(canFail)
			case c.in[k]:
				made.add(canTrue)
			default:
				made.add(canFalse)
			}
		}
		if t.glob != nil {
			m.globs[slices.Index(dimensions[:], v.name)][t.glob] = made
			continue
		}
		if perhapsLong {
			made.add(canFail)
		}
		m.tests[textKey(v.name, t.asks)] = made
	}
	if perhapsLong {
		v.size++
	}
}

func textKey(name string, t condition.Texts) string {
	return string([]byte{'t', digit(t.Before), digit(t.More)}) + name + " " + t.Part
}

func digit(b bool) byte {
	if b {
		return '1'
	}
	return '0'
}

func (t *test) add(o condition.Outcomes) {
	t.answers = append(t.answers, o)
	t.any |= o
}

// add makes the test of an atom, if it is not one of texts.
func (m *model) add(a *condition.Atom) {
	switch {
	case a.Fixed != 0, m.tests[a.Key] != nil:
	case m.levels != nil && a.AsksRisk():
		m.ofRisk(a, riskVariable, m.levels)
	case a.Texts != nil:
		m.union(a)
	case a.Name == "risk.score":
		m.ofRisk(a, a.Name, m.points)
	case a.Name != "":
		m.tests[a.Key] = &test{m.variable(a.Name, 2), []condition.Outcomes{canTrue, canFalse}, canTrue | canFalse}
	default:
		all := []condition.Outcomes{canTrue, canFalse, canFail}
		m.tests[a.Key] = &test{m.variable(a.Key, len(all)), all, canTrue | canFalse | canFail}
	}
}

// union makes the test of an atom that asks for one of several texts.
func (m *model) union(a *condition.Atom) {
	made := &test{variable: m.variable(a.Name, 1)}
	for value := range m.variables[made.variable].size {
		out := canFalse
		for _, t := range a.Texts {
			switch one := m.tests[textKey(a.Name, t)].answers[value]; {
			case one == canFail || out == canFail:
				out = canFail
			case one == canTrue:
				out = canTrue
			}
		}
		made.add(out)
	}
	if len(a.Texts) == 0 {
		made.any, made.answers = canFalse|canFail, []condition.Outcomes{canFalse, canFail} // of a name that is too long
		made.variable = m.variable(a.Key, 2)
	}
	m.tests[a.Key] = made
}

// scores returns one score of each class that the tests of nothing but the score tell apart.
func scores(all []*entry) (points []level) {
	atoms := riskAtoms(all, func(a *condition.Atom) bool { return a.Name == "risk.score" })
	if len(atoms) == 0 {
		return nil
	}
	seen := make(map[string]bool)
	for score := range risk.MaxScore + 1 {
		if key := answersAt(atoms, "", score); !seen[key] {
			seen[key] = true
			points = append(points, level{score: score})
		}
	}
	return points
}

// riskAtoms returns the tests of policies that are wanted, each once.
func riskAtoms(all []*entry, wanted func(*condition.Atom) bool) (atoms []*condition.Atom) {
	seen := make(map[string]bool)
	for _, e := range all {
		for _, c := range e.conditions() {
			c.study.formula.Atoms(func(a *condition.Atom) {
				if wanted(a) && !seen[a.Key] {
					seen[a.Key] = true
					atoms = append(atoms, a)
				}
			})
		}
	}
	return atoms
}

// answersAt is what tests come to at a risk, as one text.
func answersAt(atoms []*condition.Atom, mode string, score int) string {
	key := make([]byte, len(atoms))
	for i, a := range atoms {
		key[i] = byte(a.AtRisk(mode, score))
	}
	return string(key)
}

// ofRisk makes the test of an atom that asks for the risk. The variable has one value for each level.
func (m *model) ofRisk(a *condition.Atom, name string, levels []level) {
	made := &test{variable: m.variable(name, len(levels))}
	for _, l := range levels {
		made.add(a.AtRisk(l.mode, l.score))
	}
	m.tests[a.Key] = made
}

// A way gives variables values; those that have none yet have -1.
type way []int

func (m *model) nothingGiven() way {
	w := make(way, len(m.variables))
	for i := range w {
		w[i] = -1
	}
	return w
}

func (t *test) at(w way) condition.Outcomes {
	if v := w[t.variable]; v >= 0 {
		return t.answers[v]
	}
	return t.any
}

// outcomes returns what a condition of a policy can come to; unwritten is what it stands for where it is not written.
func (m *model) outcomes(s *study, w way, unwritten condition.Outcomes) condition.Outcomes {
	if s == nil {
		return unwritten
	}
	return s.outcomes & s.formula.Outcomes(func(a *condition.Atom) condition.Outcomes { return m.tests[a.Key].at(w) })
}

// fits returns whether the globs of a policy can fit.
func (m *model) fits(e *entry, w way) condition.Outcomes {
	out := canTrue
	for i, of := range [...]func(*entry) *pattern{toolOf, serverOf, envOf} {
		p := of(e)
		if p.any {
			continue
		}
		one := m.globs[i][p].at(w)
		if one == canFalse {
			return canFalse
		}
		out |= one
	}
	return out
}

// decides returns whether a policy can decide: its globs fit, and its condition is true, or fails where that denies.
func (m *model) decides(e *entry, w way) condition.Outcomes {
	fits := m.fits(e, w)
	if fits == canFalse {
		return canFalse
	}
	when := m.outcomes(e.when, w, canTrue)
	if when&canFail != 0 {
		when &^= canFail
		if e.strict {
			when |= canTrue
		} else {
			when |= canFalse
		}
	}
	return fits&canFalse | when
}

// asks returns whether a policy can decide, and ask for a person.
func (m *model) asks(e *entry, w way) condition.Outcomes {
	fits, when := m.fits(e, w), m.outcomes(e.when, w, canTrue)
	ask := canTrue
	if e.Effect != "pending" {
		ask = m.outcomes(e.ask, w, canFalse)
	}
	deny := m.outcomes(e.deny, w, canFalse)
	out := (fits | when | ask) & canFalse
	if deny&^canFalse != 0 || (when|ask)&canFail != 0 {
		out |= canFalse
	}
	if fits&when&ask&canTrue != 0 && deny&canFalse != 0 {
		out |= canTrue
	}
	return out
}
