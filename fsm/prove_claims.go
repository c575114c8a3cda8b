package fsm

import (
	"fmt"
	"slices"
)

// proveOneEffect proves that no path holds two rows on the effect's trigger. Where a cycle leads
// back, it finds that too.
func (c *chart) proveOneEffect() examination {
	effectTrigger := c.spec.Claims.EffectOn
	v := examination{id: "one-effect", sentence: fmt.Sprintf("There is at most one %s on any path.", effectTrigger)}
	rows := 0

	for i, first := range c.spec.Rows {
		if first.On != effectTrigger {
			continue
		}
		rows++
		after := c.floodFrom(c.rankOf(first.To), noIndex)
		for _, second := range c.spec.Rows {
			if source := c.rankOf(second.From); second.On == effectTrigger && after.reaches(source) {
				text := fmt.Sprintf("%s, then %s -%s-> %s", rowName(c.spec, i), after.pathTo(source), effectTrigger,
					second.To)
				v.faults = append(v.faults, text)
			}
		}
	}

	if rows == 0 {
		v.faults = append(v.faults, fmt.Sprintf("no row is on %q", effectTrigger))
	}

	start, effect := c.rankOf(c.spec.Start()), c.rankOf(c.spec.Claims.Effect)
	v.witness = fmt.Sprintf("%d row is on %s and none can follow it; %s paths lead to it", rows, effectTrigger,
		c.countPaths(start, effect))

	return v
}

// proveOneWayIn proves that the effect's trigger is the only way into the effect, by one row.
func (c *chart) proveOneWayIn() examination {
	claims := c.spec.Claims
	v := examination{id: "one-way-in"}
	v.sentence = fmt.Sprintf("%s is entered by %s only, by one row.", claims.Effect, claims.EffectOn)
	rows := 0

	for i, r := range c.spec.Rows {
		entersEffect, onTrigger := r.To == claims.Effect, r.On == claims.EffectOn
		switch {
		case entersEffect && onTrigger:
			if rows++; rows > 1 {
				v.faults = append(v.faults, rowName(c.spec, i)+" is a second way in")
			}
			v.witness = rowName(c.spec, i) + " is the only one"
		case entersEffect:
			v.faults = append(v.faults, fmt.Sprintf("%s enters %s by another trigger", rowName(c.spec, i), r.To))
		case onTrigger:
			v.faults = append(v.faults, fmt.Sprintf("%s is on %s and leads elsewhere", rowName(c.spec, i), r.On))
		}
	}

	if rows == 0 {
		v.faults = append(v.faults, fmt.Sprintf("no row enters %q by %q", claims.Effect, claims.EffectOn))
	}

	return v
}

// proveDominator proves that every path from the start to the effect passes a state: without it,
// the effect is out of reach.
func (c *chart) proveDominator(by State) examination {
	claims := c.spec.Claims
	v := examination{id: "dominates-" + string(by),
		sentence: fmt.Sprintf("Every path to %s passes %s.", claims.Effect, by)}
	v.faults, v.witness = c.checkCut(c.spec.Start(), claims.Effect, by)
	return v
}

func (c *chart) proveBetween(b Between) examination {
	v := examination{id: fmt.Sprintf("between-%s-%s", b.From, b.To)}
	v.sentence = fmt.Sprintf("Every path from %s to %s passes %s.", b.From, b.To, b.Via)
	v.faults, v.witness = c.checkCut(b.From, b.To, b.Via)
	return v
}

// checkCut shows that via lies on every path, or the path that avoids it. A claim that could not
// fail is a fault: there must be a path, and via must not be one of its ends.
func (c *chart) checkCut(from, to, via State) (faults []string, witness string) {
	start, end, middle := c.rankOf(from), c.rankOf(to), c.rankOf(via)
	if start == noIndex || end == noIndex || middle == noIndex {
		return []string{fmt.Sprintf("%q, %q or %q is unknown", from, to, via)}, ""
	}
	if start == end || middle == start || middle == end {
		return []string{fmt.Sprintf("the claim %s, %s, %s says nothing: two of them are the same", from, via, to)}, ""
	}
	if !c.floodFrom(start, noIndex).reaches(end) {
		return []string{fmt.Sprintf("%s cannot be reached from %s", to, from)}, ""
	}
	// A path that avoids via would be found without it.
	without := c.floodFrom(start, middle)
	if without.reaches(end) {
		return []string{"without it: " + without.pathTo(end)}, ""
	}
	return nil, fmt.Sprintf("without %s, %s leads only to %s; with it, %s paths", via, from,
		list(without.reachedStates()[1:]), c.countPaths(start, end))
}

// proveExits proves that each of some states offers each of some triggers.
func (c *chart) proveExits(i int, e Exits) examination {
	v := examination{id: fmt.Sprintf("exits-%d", i+1)}
	v.sentence = fmt.Sprintf("%s: each leaves by %s.", list(e.States), list(e.On))
	rows := 0
	for _, state := range e.States {
		for _, trigger := range e.On {
			if slices.ContainsFunc(c.spec.Rows, func(r SpecRow) bool { return r.From == state && r.On == trigger }) {
				rows++
			} else {
				v.faults = append(v.faults, fmt.Sprintf("%s does not leave by %s", state, trigger))
			}
		}
	}
	if len(e.States) == 0 || len(e.On) == 0 {
		v.faults = append(v.faults, "the claim names no state or no trigger")
	}
	v.witness = fmt.Sprintf("%d of %d rows found", rows, len(e.States)*len(e.On))
	return v
}

func (c *chart) proveSoleEntry(into State) examination {
	v := examination{id: "sole-entry-" + string(into), sentence: fmt.Sprintf("Exactly one row enters %s.", into)}
	rows := 0
	for i, r := range c.spec.Rows {
		if r.To != into {
			continue
		}
		if rows++; rows > 1 {
			v.faults = append(v.faults, rowName(c.spec, i)+" enters it as well")
		}
		v.witness = rowName(c.spec, i)
	}
	if rows == 0 {
		v.faults = append(v.faults, fmt.Sprintf("no row enters %q", into))
	}
	return v
}
