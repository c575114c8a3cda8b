package lint

import (
	"slices"
	"strings"

	"pgfsm/policy/condition"
	"pgfsm/policy/rules"
)

// Bounds of the search for a call that more risk lets through. Beyond them nothing is said.
const (
	maxAround     = 128     // policies that can be about the same calls as one
	maxOwnChoices = 1 << 10 // ways to answer what the conditions of one policy ask besides the risk
	maxVerdicts   = 1 << 22 // judgements of one policy by one way at one level, for all policies
)

// milder finds policies that stop a call, and at more risk let it through: where mode and score are higher and all else
// is as before, their condition is false, and a policy allows the call. Rules that raise the risk of a call, as those do
// that fail, would take the decision back.
func (l *linter) milder(entries []*entry) {
	s := newScale(l.content.Risk)
	if s == nil {
		return
	}
	enforced := newNeighbours(l.patterns)
	for _, e := range entries {
		if !e.shadow {
			enforced.add(e)
		}
	}
	left := maxVerdicts
	for _, e := range entries {
		if e.shadow || !e.strict || !slices.ContainsFunc(e.conditions(), func(c keyed) bool { return asksRisk(c.study) }) {
			continue
		}
		around := enforced.of(e, maxAround+1)
		if len(around) > maxAround {
			continue
		}
		levels := s.levels(riskAtoms(append([]*entry{e}, around...), (*condition.Atom).AsksRisk))
		work := maxOwnSteps
		m, ok := newModel(e, around, levels, &work)
		if !ok {
			continue
		}
		d := &descent{model: m, left: &left}
		if d.find() {
			l.add(e.place, d.key, MoreRiskIsMilder, `write risk.mode != "safe", or risk.score >= n, so that more risk stays in`,
				"it stops a call in %s, and the same call in %s is allowed, by policy %d (%q)",
				d.low, d.high, d.by.at, d.by.id)
		}
	}
}

// asksRisk reports whether a condition asks for mode or score.
func asksRisk(s *study) bool {
	return s != nil && (s.reading.Uses("risk.mode") || s.reading.Uses("risk.score"))
}

// A descent is a search for two levels of one call, of which the higher is let through.
type descent struct {
	*model
	left *int

	low, high level
	key       string // whose condition stops at the lower
	by        *entry // which allows at the higher
}

// find goes through all answers to what the globs and the subject's own conditions ask besides the risk.
func (d *descent) find() bool {
	own := &search{model: d.model}
	own.want(d.subject)
	var open []int
	ways := 1
	for v := range d.variables {
		name := d.variables[v].name
		if name == riskVariable || strings.Contains(name, `"risk.rules"`) {
			continue // which rules match may change with the risk
		}
		if slices.Contains(own.order, v) || slices.Contains(dimensions[:], name) {
			open = append(open, v)
			if ways *= d.variables[v].size; ways > maxOwnChoices {
				return false
			}
		}
	}
	return d.through(d.nothingGiven(), open)
}

func (d *descent) through(w way, open []int) bool {
	if len(open) == 0 {
		return d.falls(w)
	}
	for value := range d.variables[open[0]].size {
		w[open[0]] = value
		if d.through(w, open[1:]) {
			return true
		}
	}
	w[open[0]] = -1
	return false
}

// falls reports whether the subject stops a call of this way at one level, which is allowed at a higher one.
func (d *descent) falls(w way) bool {
	risk := d.index[riskVariable]
	type stop struct {
		level
		key string
	}
	var stops []stop
	for i, l := range d.levels {
		if w[risk] = i; *d.left < 0 || d.decidedAbove(w) {
			continue
		}
		if key := d.stops(w); key != "" {
			stops = append(stops, stop{l, key})
		}
	}
	for i, l := range d.levels {
		k := slices.IndexFunc(stops, func(s stop) bool { return l.above(s.level) })
		if k < 0 {
			continue
		}
		w[risk] = i
		if by := d.allows(w); by != nil {
			d.low, d.high, d.key, d.by = stops[k].level, l, stops[k].key, by
			return true
		}
	}
	w[risk] = -1
	return false
}

// decidedAbove reports whether a policy above decides for certain.
func (d *descent) decidedAbove(w way) bool {
	for _, p := range d.policies {
		if *d.left--; p.at > d.subject.at {
			return false
		}
		if d.decides(p, w) == canTrue {
			return true
		}
	}
	return false
}

// stops returns the key by which the subject denies or holds for certain, though not by failing; empty if it does not.
func (d *descent) stops(w way) string {
	e := d.subject
	when := d.outcomes(e.when, w, canTrue)
	switch {
	case when != canTrue:
		return ""
	case e.Effect != rules.Allow && asksRisk(e.when):
		return "when"
	case d.outcomes(e.deny, w, canFalse) == canTrue:
		return "deny"
	case d.outcomes(e.ask, w, canFalse) == canTrue:
		return "require_approval_if"
	case e.Effect != rules.Allow:
		return "effect"
	}
	return ""
}

// allows returns the policy that allows a call of this way, or nil. A policy that could stop it by its risk is taken to.
// Of a condition that does not ask for the risk, the answer is free: above the subject it is no, since the subject has
// decided at the lower level.
func (d *descent) allows(w way) *entry {
	ordered := append(slices.Clone(d.policies), d.subject)
	slices.SortFunc(ordered, func(a, b *entry) int { return a.at - b.at })
	for _, p := range ordered {
		*d.left--
		decides := d.decides(p, w)
		own, byRisk := p == d.subject, slices.ContainsFunc(p.conditions(), func(c keyed) bool { return asksRisk(c.study) })
		switch {
		case decides == canFalse || !own && !byRisk && p.at < d.subject.at:
		case !p.strict:
			return p
		case p.Effect != rules.Allow && (byRisk || decides == canTrue):
			return nil
		case p.Effect != rules.Allow: // it may, and need not
		case d.goes(p, w, own || byRisk):
			return p
		case decides == canTrue || byRisk:
			return nil
		}
	}
	return nil
}

// goes reports whether a policy that allows does so here: for certain, or as far as is known.
func (d *descent) goes(p *entry, w way, certain bool) bool {
	stops := d.outcomes(p.deny, w, canFalse) | d.outcomes(p.ask, w, canFalse)
	if when := d.outcomes(p.when, w, canTrue); certain {
		return when == canTrue && stops == canFalse
	}
	return d.outcomes(p.deny, w, canFalse)&canFalse != 0 && d.outcomes(p.ask, w, canFalse)&canFalse != 0
}
