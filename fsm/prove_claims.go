package fsm

import (
	"fmt"
	"slices"
	"strings"
)

// proveOneEffect proves that no path holds two rows on triggers of effects: no effect happens twice, and none beside another.
// Where a cycle leads back, it finds that too.
func (c *chart) proveOneEffect() examination {
	triggers := c.effectTriggers()
	v := examination{id: "one-effect", sentence: fmt.Sprintf("There is at most one %s on any path.", strings.Join(triggers, " or "))}
	rows := 0

	for i, first := range c.spec.Rows {
		if !slices.Contains(triggers, string(first.On)) {
			continue
		}
		rows++
		after := c.floodFrom(c.rankOf(first.To), noIndex)
		for _, second := range c.spec.Rows {
			source := c.rankOf(second.From)
			if slices.Contains(triggers, string(second.On)) && after.reaches(source) {
				text := fmt.Sprintf("%s, then %s -%s-> %s", rowName(c.spec, i), after.pathTo(source), second.On, second.To)
				v.faults = append(v.faults, text)
			}
		}
	}

	if rows == 0 {
		v.faults = append(v.faults, "no row is on a trigger of an effect")
	}
	v.witness = fmt.Sprintf("rows on these triggers: %d; none can follow another", rows)

	return v
}

func (c *chart) effectTriggers() (triggers []string) {
	for _, e := range c.spec.Claims.Effects {
		triggers = append(triggers, string(e.On))
	}
	return triggers
}

// proveOneWayIn proves that the effect's trigger is the only way into the effect, by one row.
func (c *chart) proveOneWayIn(effect *Effect) examination {
	v := examination{id: "one-way-in-" + string(effect.State)}
	v.sentence = fmt.Sprintf("%s is entered by %s only, by one row.", effect.State, effect.On)
	rows := 0

	for i, r := range c.spec.Rows {
		entersEffect, onTrigger := r.To == effect.State, r.On == effect.On
		switch {
		case entersEffect && onTrigger:
			if rows++; rows > 1 {
				v.faults = append(v.faults, rowName(c.spec, i)+" is a second way in")
			}
			v.witness = fmt.Sprintf("%s is the only one; %s paths lead to it", rowName(c.spec, i),
				c.countPaths(c.rankOf(c.spec.Start()), c.rankOf(effect.State)))
		case entersEffect:
			v.faults = append(v.faults, fmt.Sprintf("%s enters %s by another trigger", rowName(c.spec, i), r.To))
		case onTrigger:
			v.faults = append(v.faults, fmt.Sprintf("%s is on %s and leads elsewhere", rowName(c.spec, i), r.On))
		}
	}

	if rows == 0 {
		v.faults = append(v.faults, fmt.Sprintf("no row enters %q by %q", effect.State, effect.On))
	}

	return v
}

// proveDominator proves that every path from the start to an effect passes a state: without it,
// the effect is out of reach.
func (c *chart) proveDominator(effect *Effect, by State) examination {
	v := examination{id: fmt.Sprintf("dominates-%s-%s", effect.State, by),
		sentence: fmt.Sprintf("Every path to %s passes %s.", effect.State, by)}
	v.faults, v.witness = c.checkCut(c.spec.Start(), effect.State, by)
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
