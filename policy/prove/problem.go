package prove

import (
	"fmt"
	"slices"
	"strings"

	"pgfsm/policy/condition"
)

// maxWork bounds the policies and risks that a search looks at, over all points.
const maxWork = 5_000_000

// A problem is a search among the calls of one tool by callers of one form. At a point of the
// search some places have a cell, and some conditions that are free have an outcome.
type problem struct {
	tool  *tool
	form  form
	sides []*side // the policies, and the older ones that they are compared with
	cache *cache

	domains  []*domain
	slots    map[*atom]slot
	free     map[*atom]string       // why the outcomes of an atom are not computed
	outcomes map[*atom]outcomes     // what is known at the point of atoms without a cell
	chosen   []int                  // by domain: the cell; -1 if it is open
	asks     map[*riskRules][]*atom // the atoms about the risk
	settled  map[*riskRules]bool    // the point has a risk
	asked    map[string]vector      // the outcomes of the atoms about a risk
	// In a Space, the policies whose globs match, the atoms that are free, and the risks of calls.
	fits   []bool // by index
	isOpen func(*atom) bool
	levels []condition.Risk

	assumed []*atom // whose outcomes were chosen freely, in order
	guessed *atom   // because of which any risk was taken for possible; nil: none
	first   *atom   // the first atom on which the answer at the point depends

	// goal says whether some calls at the point, and all of them, are sought. settle is called at
	// points where all are. Both may end the search by finished.
	goal     func() (some, all bool)
	settle   func()
	giveUp   func(reason string)
	cost     int // of one point
	work     int
	finished bool
}

// A slot is the place of an atom among those of a domain.
type slot struct{ domain, index int }

// divideAll divides the places of atoms, and of those that decide about the risk.
func (p *problem) divideAll(atoms []*atom) {
	p.slots, p.free, p.outcomes = map[*atom]slot{}, map[*atom]string{}, map[*atom]outcomes{}
	p.asks, p.settled, p.asked = map[*riskRules][]*atom{}, map[*riskRules]bool{}, map[string]vector{}
	byPlace, places := map[string][]*atom{}, []string(nil)
	var add func(a *atom)
	add = func(a *atom) {
		if p.outcomes[a] != 0 {
			return
		}
		p.outcomes[a] = anything
		switch {
		case a.free != "":
			p.free[a] = a.free
		case p.isOpen != nil && p.isOpen(a):
			p.free[a] = "it has no place"
		case a.place == placeConstant, a.place == placeRisk && a.risk == nil:
			// Without risk rules every call has the same risk.
			p.outcomes[a] = outcomes(ask([]*atom{a}, p.tool.input())[0])
		case a.place == placeRisk:
			p.asks[a.risk] = append(p.asks[a.risk], a)
			if p.isOpen != nil {
				return
			}
			for _, r := range p.fittingRules(a.risk) {
				for _, one := range slices.Concat(r.predicates, r.score) {
					add(one)
				}
			}
		default:
			addTo(&places, a.place)
			byPlace[a.place] = append(byPlace[a.place], a)
		}
	}
	for _, a := range atoms {
		add(a)
	}

	for _, place := range places {
		d := p.divide(place, byPlace[place])
		if d.problem != "" {
			for _, a := range d.atoms {
				p.free[a] = d.problem
			}
			continue
		}
		for i, a := range d.atoms {
			p.slots[a] = slot{len(p.domains), i}
		}
		p.domains, p.chosen = append(p.domains, d), append(p.chosen, -1)
	}
}

// fittingRules returns the risk rules that can match calls of the tool.
func (p *problem) fittingRules(r *riskRules) (fitting []*riskRule) {
	input := p.tool.input()
	for i := range r.rules {
		if r.rules[i].globs.Fit(input) {
			fitting = append(fitting, &r.rules[i])
		}
	}
	return fitting
}

// outcomesOf returns the outcomes that an atom can have at the point.
func (p *problem) outcomesOf(a *atom) outcomes {
	out := p.outcomes[a]
	if at, ok := p.slots[a]; ok && !slices.Contains(p.assumed, a) {
		d := p.domains[at.domain]
		if out = outcomes(d.union[at.index]); p.chosen[at.domain] >= 0 {
			out = outcomes(d.cells[p.chosen[at.domain]].out[at.index])
		}
	}
	if out != 0 {
		return out
	}
	return anything // it is not divided
}

// eval returns the outcomes of a formula at the point, and notes the first atom that is open. A nil
// formula is a condition that is not written.
func (p *problem) eval(f *formula, unwritten outcomes) outcomes {
	if f == nil {
		return unwritten
	}
	out := f.outcomes(p.outcomesOf)
	if p.first == nil && !out.isOne() {
		p.first = f.openAtom(p.outcomesOf)
	}
	return out
}

// search visits the points below the current one.
func (p *problem) search() {
	if p.work += 1 + p.cost; p.work > maxWork {
		p.giveUp("there are too many combinations of what conditions ask")
		return
	}
	p.first = nil
	some, all := p.goal()
	switch first := p.first; {
	case !some:
	case all:
		p.settle()
	case first == nil:
		p.giveUp("internal error: the decision depends on no condition")
	case first.place == placeRisk && p.free[first] == "" && !p.settled[first.risk]:
		p.branchOnRisk(first)
	default:
		p.branch(first)
	}
}

// branch visits what an atom can be: the cells of its place, or its outcomes if it is free.
func (p *problem) branch(a *atom) {
	if at, ok := p.slots[a]; ok && p.chosen[at.domain] < 0 {
		for i := range p.domains[at.domain].cells {
			p.chosen[at.domain] = i
			if p.search(); p.finished {
				break
			}
		}
		p.chosen[at.domain] = -1
		return
	}

	before := p.outcomesOf(a)
	p.assumed = append(p.assumed, a)
	for _, one := range []outcomes{canTrue, canFalse, canFail} {
		if before&one == 0 {
			continue
		}
		p.outcomes[a] = one
		if p.search(); p.finished {
			break
		}
	}
	p.outcomes[a], p.assumed = before, p.assumed[:len(p.assumed)-1]
}

// setRisk sets the outcomes of the atoms about a risk; an empty vector leaves them open.
func (p *problem) setRisk(r *riskRules, out vector) {
	for i, a := range p.asks[r] {
		p.outcomes[a] = anything
		if out != "" {
			p.outcomes[a] = outcomes(out[i])
		}
	}
}

// branchOnRisk visits the risks that the calls at the point can have. First it visits what the risk
// depends on.
func (p *problem) branchOnRisk(about *atom) {
	r, guessedBefore := about.risk, p.guessed
	risks, guesses := p.levels, p.levels != nil
	if !guesses {
		var guessed *atom
		for _, rule := range p.fittingRules(r) {
			if p.matchOutcomes(rule) == canFalse {
				continue
			}
			for _, a := range slices.Concat(rule.predicates, rule.score) {
				at, divided := p.slots[a]
				switch known := p.outcomesOf(a).isOne(); {
				case divided && p.chosen[at.domain] < 0 && !known:
					p.branch(a)
					return
				case !known || slices.Contains(p.assumed, a): // it need not be so for the call
					guessed = a
				}
			}
		}
		if guesses = guessed != nil; guesses {
			p.guessed = guessed
		} else {
			judged := r.model.Judge(condition.NewSubject(p.call().Input(p.sides[0].bundle)))
			risks, guesses = []condition.Risk{judged.Risk()}, judged.Spent != ""
		}
		if guesses {
			risks = p.possibleRisks(r)
		}
	}

	p.work += len(risks)
	p.settled[r] = true
	known := map[vector]bool{}
	for i := range risks {
		out := p.riskOutcomes(r, &risks[i], guesses)
		if known[out] {
			continue
		}
		known[out] = true
		p.setRisk(r, out)
		if p.search(); p.finished {
			break
		}
	}
	p.setRisk(r, "")
	p.settled[r], p.guessed = false, guessedBefore
}

// possibleRisks returns the modes and scores of the calls at the point. Some may be of no call.
func (p *problem) possibleRisks(r *riskRules) []condition.Risk {
	return r.model.Possible(p.tool.server, p.tool.name, p.tool.env, func(rule int) (yes, no, unknown bool) {
		out := p.matchOutcomes(&r.rules[rule])
		return out&canTrue != 0, out&canFalse != 0, out&canFail != 0
	})
}

// riskOutcomes returns the outcomes of the atoms about a risk. Of a guessed one, the rules are not known.
func (p *problem) riskOutcomes(r *riskRules, one *condition.Risk, guessed bool) vector {
	key := fmt.Sprintf("%p %s %d %q %t", r, one.Mode, one.Score, one.Rules, guessed)
	if p.asked[key] == "" {
		in := p.tool.input()
		in.Risk = *one
		out := []byte(ask(p.asks[r], in))
		for i, a := range p.asks[r] {
			if guessed && slices.Contains(a.reads, "risk.rules") {
				out[i] = byte(anything)
			}
		}
		p.asked[key] = vector(out)
	}
	return p.asked[key]
}

// matchOutcomes says whether a risk rule matches the calls at the point.
func (p *problem) matchOutcomes(r *riskRule) outcomes {
	out := canTrue
	for _, a := range r.predicates {
		out = out.and(p.outcomesOf(a))
	}
	return out
}

// call returns a call of the chosen cells, and of any cells of the other places.
func (p *problem) call() *Call {
	c := p.tool.newCall(p.form)
	for i, d := range p.domains {
		if len(d.cells) > 0 {
			d.cells[max(p.chosen[i], 0)].apply(c)
		}
	}
	c.finish()
	return c
}

// asksCaller reports whether conditions tell callers apart.
func (p *problem) asksCaller() bool {
	return slices.ContainsFunc(p.domains, func(d *domain) bool { return strings.HasPrefix(d.name, placeActor) })
}
