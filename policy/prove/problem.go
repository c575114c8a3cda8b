package prove

import (
	"slices"
	"strings"

	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
)

// A problem is a claim about the calls of one tool.
type problem struct {
	tool    *tool
	claim   *claim
	sides   []*side // the policies, and the older ones that they are compared with
	entries [][]*entry
	scope   *formula

	domains  []*domain
	slots    map[*atom]slot
	free     map[*atom]string   // why the outcomes of an atom are not computed
	outcomes map[*atom]outcomes // what is known at the point of the search
	chosen   []int              // by domain: the cell; -1 if it is open
	risks    map[*riskRules]*condition.Risk
	asks     map[*riskRules][]*atom // the atoms about the risk
	asked    map[riskKey][]outcomes // their outcomes

	assumed []*atom   // whose outcomes were chosen freely, in order
	guessed *riskRule // whose score was chosen freely; nil: none was

	work     int
	tries    int
	result   Result
	finished bool
}

// A slot is the place of an atom among those of a domain.
type slot struct{ domain, index int }

// newProblem collects the conditions that can decide about the tool, and divides their places.
func newProblem(t *tool, c *claim, sides []*side) *problem {
	p := &problem{
		tool:     t,
		claim:    c,
		sides:    sides,
		scope:    c.when,
		slots:    map[*atom]slot{},
		free:     map[*atom]string{},
		outcomes: map[*atom]outcomes{},
		risks:    map[*riskRules]*condition.Risk{},
		asks:     map[*riskRules][]*atom{},
		asked:    map[riskKey][]outcomes{},
	}
	byPlace, places := map[string][]*atom{}, []string(nil)
	seen := map[*atom]bool{}
	add := func(a *atom) {
		if seen[a] {
			return
		}
		seen[a] = true
		switch {
		case a.free != "":
			p.free[a], p.outcomes[a] = a.free, anything
		case a.place == placeConstant:
			p.outcomes[a] = ask([]*atom{a}, t.input())[0]
		case a.place == placeRisk:
			p.asks[a.risk] = append(p.asks[a.risk], a)
		default:
			if byPlace[a.place] == nil {
				places = append(places, a.place)
			}
			byPlace[a.place] = append(byPlace[a.place], a)
		}
	}

	p.scope.forEachAtom(add)
	input := t.input()
	for _, s := range sides {
		var fitting []*entry
		for i := range s.policies {
			e := &s.policies[i]
			if !e.globs.Fit(input) {
				continue
			}
			fitting = append(fitting, e)
			for _, f := range []*formula{e.when, e.deny, e.ask} {
				f.forEachAtom(add)
			}
			if e.when == nil && e.deny == nil && e.ask == nil {
				break // no call gets below it
			}
		}
		p.entries = append(p.entries, fitting)
	}

	for _, r := range p.riskRules() {
		p.addRisk(r, add)
	}
	for _, place := range places {
		p.addDomain(&domain{name: place, atoms: byPlace[place]})
	}
	p.chosen = make([]int, len(p.domains))
	for i := range p.chosen {
		p.chosen[i] = -1
	}
	return p
}

// riskRules returns the risk rules whose risks conditions ask about, in the order of the sides.
func (p *problem) riskRules() (all []*riskRules) {
	for _, s := range p.sides {
		if !slices.Contains(all, s.risk) && len(p.asks[s.risk]) > 0 {
			all = append(all, s.risk)
		}
	}
	return all
}

// addRisk adds the predicates that decide about the risk of the tool's calls.
func (p *problem) addRisk(r *riskRules, add func(*atom)) {
	if r == nil { // without risk rules every call has the same risk
		in := p.tool.input()
		for _, a := range p.asks[r] {
			p.outcomes[a] = ask([]*atom{a}, in)[0]
		}
		return
	}
	for _, a := range p.asks[r] {
		p.outcomes[a] = anything
	}
	input := p.tool.input()
	for i := range r.rules {
		if r.rules[i].globs.Fit(input) {
			for _, a := range r.rules[i].predicates {
				add(a)
			}
			if score := r.rules[i].score; score != nil && score.exact {
				for _, a := range score.atoms {
					add(a)
				}
			}
		}
	}
}

// addDomain divides a place. If that fails, its atoms are free.
func (p *problem) addDomain(d *domain) {
	why := ""
	switch {
	case strings.HasPrefix(d.name, placeArgs):
		d, why = p.tool.divideOnce(d)
	case d.name == placeAnnotations:
		p.tool.divideAnnotations(d)
	case d.name == placeCaller:
		why = p.tool.divideCaller(d, p.sides)
	case strings.HasPrefix(d.name, placeHistory):
		p.tool.divideHistory(d)
	default:
		why = p.tool.divideName(d)
	}
	if why != "" {
		for _, a := range d.atoms {
			p.free[a], p.outcomes[a] = why, anything
		}
		return
	}

	if d.union == nil {
		d.finish()
	}
	for i, a := range d.atoms {
		p.slots[a] = slot{len(p.domains), i}
		p.outcomes[a] = d.union[i]
	}
	p.domains = append(p.domains, d)
}

// outcomesOf returns the outcomes that an atom can have at the point. An atom of which nothing is
// known can have any.
func (p *problem) outcomesOf(a *atom) outcomes {
	if out := p.outcomes[a]; out != 0 {
		return out
	}
	return anything
}

// choose chooses a cell of a domain, or none (-1).
func (p *problem) choose(domain, index int) {
	d := p.domains[domain]
	p.chosen[domain] = index
	out := d.union
	if index >= 0 {
		out = d.cells[index].out
	}
	for i, a := range d.atoms {
		p.outcomes[a] = out[i]
	}
}

// fitsTag reports whether a cell belongs to the caller that other cells describe.
func (p *problem) fitsTag(c *cell) bool {
	if c.tag == anyCaller {
		return true
	}
	if c.tag != subject && len(p.tool.groups) > 0 {
		return false // only members of groups may call the tool
	}
	for i, index := range p.chosen {
		if index < 0 {
			continue
		}
		if other := p.domains[i].cells[index].tag; other != anyCaller && other != c.tag {
			return false
		}
	}
	return true
}

// maxRisks bounds the states of the risk rules that are followed.
const maxRisks = 20_000

// possibleRisks returns the risks that calls at the point can have. Some of them may be of no call
// if a score is unknown.
func (p *problem) possibleRisks(r *riskRules) (risks []condition.Risk, guessed *riskRule, ok bool) {
	t := p.tool
	example, complete := p.callOfCells()
	in := example.Input(p.sides[0].bundle)
	asksRules := slices.ContainsFunc(p.asks[r], func(a *atom) bool { return slices.Contains(a.reads, "risk.rules") })
	risks, ok = r.model.Possible(t.server, t.name, t.env, risk.Possibility{
		Matches: func(rule int) (yes, no, unknown bool) {
			out := p.matchOutcomes(&r.rules[rule])
			return out&canTrue != 0, out&canFalse != 0, out&canFail != 0
		},
		Scores: func(rule, score int) ([]float64, bool) {
			if complete && p.isDecided(r.rules[rule].score) {
				return r.rules[rule].score.valueFor(r, in, score)
			}
			guessed = &r.rules[rule]
			return anyScore, true
		},
		Keeps: func(string) bool { return asksRules },
		Most:  maxRisks,
	})
	return risks, guessed, ok
}

// isDecided reports whether every call of the chosen cells has the same value of an expression.
func (p *problem) isDecided(s *score) bool {
	return s.exact && !slices.ContainsFunc(s.atoms, func(a *atom) bool {
		at, ok := p.slots[a]
		switch {
		case a.place == placeConstant && a.free == "":
			return false
		case !ok || p.free[a] != "":
			return true
		case p.chosen[at.domain] < 0:
			return !p.domains[at.domain].union[at.index].isOne()
		}
		return !p.domains[at.domain].cells[p.chosen[at.domain]].out[at.index].isOne()
	})
}

// matchOutcomes says whether a risk rule matches the calls at the point.
func (p *problem) matchOutcomes(r *riskRule) outcomes {
	out := canTrue
	for _, a := range r.predicates {
		out = out.and(p.outcomesOf(a))
	}
	return out
}

// setRisk sets the outcomes of the atoms about a risk; nil opens them again.
func (p *problem) setRisk(r *riskRules, one *condition.Risk) {
	p.risks[r] = one
	if one == nil {
		for _, a := range p.asks[r] {
			p.outcomes[a] = anything
		}
		return
	}
	key := riskKey{r, one.Mode, one.Score, strings.Join(one.Rules, "\x00")}
	known := p.asked[key]
	if known == nil {
		in := p.tool.input()
		in.Risk = *one
		known = ask(p.asks[r], in)
		p.asked[key] = known
	}
	for i, out := range known {
		p.outcomes[p.asks[r][i]] = out
	}
}

// A riskKey is a risk by the rules of one side.
type riskKey struct {
	rules *riskRules
	mode  string
	score int
	ids   string
}
