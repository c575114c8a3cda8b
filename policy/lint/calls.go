package lint

import (
	"slices"
	"strings"

	"pgfsm/internal/glob"
	"pgfsm/policy/condition"
	"pgfsm/policy/rules"
)

// maxPoints bounds the points of one enumeration. Beyond it lint reports nothing.
const maxPoints = 1 << 12

// A view evaluates policies at points. A point is a set of calls with the same names, risk, and answers to some questions.
type view struct {
	match   *match             // of all calls; the names are otherwise unknown
	names   *[nameCount]string // unless they are given
	levels  []level            // nil: the risk is a question like others
	level   int                // -1: any
	answers map[any]condition.Outcomes
	matches map[textQuestion]condition.Outcomes // by match alone
}

// A question is the test of an atom, with its possible answers. Different questions count as independent, so a point may be an impossible call; a statement
// that holds at every point holds for every call.
type question struct {
	key     any // a textQuestion, or the key of an atom
	answers []condition.Outcomes
}

// A textQuestion asks whether a name is one of some texts.
type textQuestion struct {
	name  int
	texts condition.Texts
}

func newView(m *match, levels []level) *view {
	return &view{match: m, levels: levels, level: -1, answers: map[any]condition.Outcomes{}, matches: map[textQuestion]condition.Outcomes{}}
}

// text answers a question about a name.
func (v *view) text(q textQuestion) condition.Outcomes {
	if v.names != nil {
		return truth(q.texts.Has(v.names[q.name]))
	}
	if answer, ok := v.answers[q]; ok {
		return answer
	}
	answer, ok := v.matches[q]
	if !ok {
		answer = canTrue | canFalse
		own, asked := v.match[q.name], globOf(q.texts)
		literal, one := own.Literal()
		switch {
		case one:
			answer = truth(q.texts.Has(literal))
		case asked != nil && glob.Includes(asked, own):
			answer = canTrue
		case asked != nil && !glob.Overlaps(asked, own):
			answer = canFalse
		}
		v.matches[q] = answer
	}
	return answer
}

func truth(b bool) condition.Outcomes {
	if b {
		return canTrue
	}
	return canFalse
}

// ask returns the question of an atom that is not about names or risk.
func (v *view) ask(a *condition.Atom) question {
	q := question{a.Key, []condition.Outcomes{canTrue, canFalse, canFail}}
	if a.Name == "pinned" || strings.HasPrefix(a.Name, "tool_annotations.") {
		q.answers = q.answers[:2]
	}
	return q
}

// atom returns the possible outcomes of an atom.
func (v *view) atom(a *condition.Atom) condition.Outcomes {
	name := slices.Index(nameOf[:], a.Name)
	switch {
	case name >= 0 && a.Texts != nil:
		out := canFalse
		for _, texts := range a.Texts {
			answer := v.text(textQuestion{name, texts})
			if answer == canTrue {
				return canTrue
			}
			out |= answer
		}
		return out
	case a.AsksRisk() && v.levels != nil && v.level >= 0:
		return a.AtRisk(v.levels[v.level].mode, v.levels[v.level].score)
	}
	if answer, ok := v.answers[a.Key]; ok {
		return answer
	}
	return canTrue | canFalse | canFail
}

// questions returns the open questions in the conditions of policies, besides the risk.
func (v *view) questions(entries ...*entry) (open []question) {
	seen := map[any]bool{}
	add := func(q question) {
		if !seen[q.key] {
			seen[q.key] = true
			open = append(open, q)
		}
	}
	for _, e := range entries {
		for _, c := range e.conditions() {
			c.formula.Atoms(func(a *condition.Atom) {
				name := slices.Index(nameOf[:], a.Name)
				switch {
				case a.Fixed != 0 || a.AsksRisk() && v.levels != nil:
				case name >= 0 && a.Texts != nil:
					for _, texts := range a.Texts {
						if q := (textQuestion{name, texts}); v.text(q) == canTrue|canFalse {
							add(question{q, []condition.Outcomes{canTrue, canFalse}})
						}
					}
				default:
					add(v.ask(a))
				}
			})
		}
	}
	return open
}

// exists reports whether visit is true at a point, for all answers to questions and all levels. It is true, too, if there are
// too many points.
func (v *view) exists(open []question, visit func() bool) bool {
	return !v.few(open) || v.each(open, func() bool {
		defer func() { v.level = -1 }()
		for v.level = range v.levels {
			if visit() {
				return true
			}
		}
		return v.levels == nil && visit()
	})
}

// few reports whether the points can be enumerated.
func (v *view) few(open []question) bool {
	points := max(1, len(v.levels))
	for _, q := range open {
		if points *= len(q.answers); points > maxPoints {
			return false
		}
	}
	return true
}

// each calls visit for all answers to questions, until it returns true.
func (v *view) each(open []question, visit func() bool) bool {
	if len(open) == 0 {
		return visit()
	}
	defer delete(v.answers, open[0].key)
	for _, answer := range open[0].answers {
		if v.answers[open[0].key] = answer; v.each(open[1:], visit) {
			return true
		}
	}
	return false
}

// condition returns the possible outcomes of a condition, or unwritten if there is none.
func (v *view) condition(x *expression, unwritten condition.Outcomes) condition.Outcomes {
	if x == nil {
		return unwritten
	}
	return x.outcomes & x.formula.Outcomes(v.atom)
}

// decides returns whether a policy can decide: its match fits, and its condition is true, or fails where that denies.
func (v *view) decides(e *entry) condition.Outcomes {
	fits := canTrue
	if v.names != nil {
		fits = truth(e.match.fits(v.names))
	} else if !e.match.includes(v.match) {
		fits = canTrue | canFalse
	}
	if fits == canFalse {
		return canFalse
	}
	when := v.condition(e.when, canTrue)
	if when&canFail != 0 {
		when = when&^canFail | truth(e.strict)
	}
	return fits&canFalse | when
}

// holds returns whether a policy whose match fits can decide, and ask for approval.
func (v *view) holds(e *entry) condition.Outcomes {
	when, deny, ask := v.condition(e.when, canTrue), v.condition(e.deny, canFalse), canTrue
	if e.Effect != rules.Pending {
		ask = v.condition(e.ask, canFalse)
	}
	out := (when | ask) & canFalse
	if deny&^canFalse != 0 || (when|ask)&canFail != 0 {
		out |= canFalse
	}
	if when&ask&canTrue != 0 && deny&canFalse != 0 {
		out |= canTrue
	}
	return out
}

// outcomes returns the possible outcomes of a policy's condition for the calls that its match covers.
func (l *linter) outcomes(e *entry, x *expression) (all condition.Outcomes) {
	own := &entry{Policy: e.Policy, match: e.match, when: x}
	v := newView(&e.match, l.risk.levels([]*entry{own}))
	open := v.questions(own)
	for _, one := range []condition.Outcomes{canTrue, canFalse, canFail} {
		if x.outcomes&one != 0 && v.exists(open, func() bool { return v.condition(x, 0)&one != 0 }) {
			all |= one
		}
	}
	return all
}
