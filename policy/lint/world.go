package lint

import (
	"slices"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"pgfsm/internal/glob"
	"pgfsm/policy/condition"
	"pgfsm/policy/rules"
)

// maxPoints bounds the points of one enumeration. Beyond it lint reports nothing.
const maxPoints = 1 << 12

// boolNames are the names with a bool, and actorTexts those of the actor with a text.
var (
	boolNames  = namesOf("bool", "")
	actorTexts = namesOf("string", "actor.")
)

// unusable is the value of a name that is unknown or too long.
var unusable = types.NewErr("unknown or too long")

func namesOf(typeName, prefix string) (names []string) {
	for _, n := range condition.Names() {
		if n.Type == typeName && strings.HasPrefix(n.Name, prefix) &&
			!strings.HasPrefix(n.Name, condition.ClaimPrefix) {
			names = append(names, n.Name)
		}
	}
	return names
}

// A world is the set of calls that a match covers. At a point of the world, names have values and
// questions have answers; whatever else conditions ask is open.
type world struct {
	match *match
	// This many of the first conditions are tried with true first, the others with false; 0: all.
	ownConditions int
	levels        []level // the levels that a call can have; nil: unknown
	values        map[string]ref.Val
	answers       map[string]outcomes
}

// newWorld returns the world of a match at no point: only names that the match writes out have
// values.
func newWorld(m *match, levels []level) *world {
	w := &world{
		match:   m,
		levels:  levels,
		values:  map[string]ref.Val{},
		answers: map[string]outcomes{},
	}
	for i, name := range nameOf {
		if literal, ok := m[i].Literal(); ok {
			w.values[name] = types.String(literal)
		}
	}
	return w
}

// A question distinguishes the points of a world.
type question struct {
	possible int // the number of answers
	choose   func(i int)
	forget   func()
}

// nameQuestion is the question which of some values a name has. The nil value is any other text.
func (w *world) nameQuestion(name string, values []ref.Val) question {
	forget := func() { delete(w.values, name) }
	return question{len(values), func(i int) {
		if forget(); values[i] != nil {
			w.values[name] = values[i]
		}
	}, forget}
}

// freeQuestion is a question whose answers are independent of all others. So a point may be an
// impossible call; what holds at every point holds for every call.
func (w *world) freeQuestion(key string, answers ...outcomes) question {
	return question{len(answers), func(i int) { w.answers[key] = answers[i] }, func() { delete(w.answers, key) }}
}

func (w *world) riskQuestion() question {
	return question{len(w.levels), func(i int) { w.setLevel(w.levels[i]) }, func() {
		delete(w.values, "risk.mode")
		delete(w.values, "risk.score")
	}}
}

func (w *world) setLevel(l level) {
	w.values["risk.mode"], w.values["risk.score"] = types.String(l.mode), types.Int(l.score)
}

// questionsOf returns the questions of conditions.
func (w *world) questionsOf(expressions ...*expression) []question {
	questions := w.questionsWithoutRisk(expressions...)
	if w.levels != nil && slices.ContainsFunc(expressions, func(x *expression) bool { return x.asksRisk }) {
		questions = append(questions, w.riskQuestion())
	}
	return questions
}

// questionsWithoutRisk returns the questions of conditions, without that of the risk.
func (w *world) questionsWithoutRisk(expressions ...*expression) (found []question) {
	var names []string // the names in the order of their first use
	domains, asked := map[string][]ref.Val{}, map[string]bool{}
	free := func(key string, tryFalse bool, answers ...outcomes) {
		if !asked[key] {
			if tryFalse {
				slices.Reverse(answers)
			}
			asked[key] = true
			found = append(found, w.freeQuestion(key, answers...))
		}
	}

	// The names that have few values, and the atoms that stay open with them.
	for i, x := range expressions {
		x.formula.forEachAtom(func(a *atom) {
			for _, name := range a.reads {
				if w.values[name] == nil && !slices.Contains(names, name) && w.domain(name) != nil {
					names = append(names, name)
					domains[name] = w.domain(name)
				}
			}
			w.addLiterals(a.texts, domains)
			if w.isOpen(a) {
				free(a.key, w.ownConditions > 0 && i >= w.ownConditions, canTrue, canFail, canFalse)
			}
		})
	}

	// Names come last, so that the search varies them first.
	for _, name := range names {
		found = append(found, w.nameQuestion(name, domains[name]))
	}

	return found
}

// domain returns the values of a name that has a few: both bools, or another text than those that
// conditions write out. For other names it is nil.
func (w *world) domain(name string) []ref.Val {
	switch {
	case slices.Contains(boolNames, name):
		return []ref.Val{types.True, types.False}
	case slices.Contains(nameOf[:], name):
		return []ref.Val{nil}
	case slices.Contains(actorTexts, name):
		return []ref.Val{nil, unusable}
	}
	return nil
}

// addLiterals adds the literals that a test compares for equality to the domain of its name.
func (w *world) addLiterals(t *textTest, domains map[string][]ref.Val) {
	if t == nil || domains[t.name] == nil {
		return
	}
	i := slices.Index(nameOf[:], t.name)
	for _, text := range t.texts {
		v := ref.Val(types.String(text))
		if (i < 0 || w.match[i].Match(text)) && !slices.Contains(domains[t.name], v) {
			domains[t.name] = append(domains[t.name], v)
		}
	}
}

// isOpen reports whether an atom can be unknown at a point although the names with a domain have
// values.
func (w *world) isOpen(a *atom) bool {
	if a.part == nil {
		return true
	}
	return slices.ContainsFunc(a.reads, func(name string) bool {
		switch {
		case w.values[name] != nil, slices.Contains(boolNames, name):
			return false
		case name == "risk.mode" || name == "risk.score":
			return w.levels == nil
		}
		return a.texts == nil || w.domain(name) == nil
	})
}

// existsPoint reports whether visit is true at a point. It is true, too, if there are too many
// points.
func (w *world) existsPoint(questions []question, visit func() bool) bool {
	return !canEnumerate(questions) || w.searchPoints(questions, visit)
}

// canEnumerate reports whether the points can be enumerated.
func canEnumerate(questions []question) bool {
	points := 1
	for _, q := range questions {
		if points *= q.possible; points > maxPoints {
			return false
		}
	}
	return true
}

func (w *world) searchPoints(questions []question, visit func() bool) bool {
	if len(questions) == 0 {
		return visit()
	}
	defer questions[0].forget()
	for i := range questions[0].possible {
		if questions[0].choose(i); w.searchPoints(questions[1:], visit) {
			return true
		}
	}
	return false
}

// atomOutcomes returns the outcomes of an atom at the point.
func (w *world) atomOutcomes(a *atom) outcomes {
	if t := a.texts; t != nil && w.values[t.name] == nil && w.domain(t.name) != nil {
		return boolOutcome(t.negated) // the text is not among those that conditions write out
	}
	if out := a.outcomesFor(w.values); out != anything {
		return out
	}
	if answer, ok := w.answers[a.key]; ok {
		return answer
	}
	return anything
}

// conditionOutcomes returns the outcomes of a condition at the point, or unwritten if there is
// none.
func (w *world) conditionOutcomes(x *expression, unwritten outcomes) outcomes {
	if x == nil {
		return unwritten
	}
	return x.formula.outcomes(w.atomOutcomes)
}

// outcomesInWorld returns the outcomes of a condition in the whole world.
func (w *world) outcomesInWorld(x *expression, unwritten outcomes) (all outcomes) {
	if x == nil {
		return unwritten
	}
	if w.existsPoint(w.questionsOf(x), func() bool {
		all |= w.conditionOutcomes(x, 0)
		return all == anything
	}) {
		return anything
	}
	return all
}

// decisionOutcomes says whether a policy decides: its match fits, and its condition is true, or
// fails where that denies.
func (w *world) decisionOutcomes(e *entry) outcomes {
	fits := w.matchOutcomes(&e.match)
	if fits == canFalse {
		return canFalse
	}
	when := w.conditionOutcomes(e.when, canTrue)
	if when&canFail != 0 {
		when = when&^canFail | boolOutcome(e.strict)
	}
	return fits&canFalse | when
}

// matchOutcomes says whether a match covers the calls at the point.
func (w *world) matchOutcomes(m *match) outcomes {
	fits := canTrue
	for i, name := range nameOf {
		if text, ok := w.values[name].(types.String); ok {
			fits = fits.and(boolOutcome(m[i].Match(string(text))))
		} else if !glob.Includes(m[i], w.match[i]) {
			fits = fits.and(canTrue | canFalse)
		}
	}
	return fits
}

// holdOutcomes says whether a policy whose match fits decides and asks for approval.
func (w *world) holdOutcomes(e *entry) outcomes {
	when, deny, ask := w.conditionOutcomes(e.when, canTrue), w.conditionOutcomes(e.deny, canFalse), canTrue
	if e.Effect != rules.Pending {
		ask = w.conditionOutcomes(e.ask, canFalse)
	}
	out := when.and(deny.negate()).and(ask)
	if out&canFail != 0 {
		out = out&^canFail | canFalse
	}
	return out
}
