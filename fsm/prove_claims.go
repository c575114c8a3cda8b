package fsm

import (
	"fmt"
	"slices"
)

// oneEffect proves that no path holds two rows on the effect's trigger. Where a cycle leads back,
// it finds that too.
func (c *chart) oneEffect() verdict {
	on := c.spec.Claims.EffectOn
	v := verdict{id: "one-effect", sentence: fmt.Sprintf("There is at most one %s on any path.", on)}
	rows := 0

	for i, first := range c.spec.Rows {
		if first.On != on {
			continue
		}
		rows++
		after := c.flood(c.place(first.To), nowhere)
		for _, second := range c.spec.Rows {
			if from := c.place(second.From); second.On == on && after.reached(from) {
				text := fmt.Sprintf("%s, then %s -%s-> %s", rowName(c.spec, i), after.path(from), on, second.To)
				v.faults = append(v.faults, text)
			}
		}
	}

	if rows == 0 {
		v.faults = append(v.faults, fmt.Sprintf("no row is on %q", on))
	}

	start, effect := c.place(c.spec.Start()), c.place(c.spec.Claims.Effect)
	v.witness = fmt.Sprintf("%d row is on %s and none can follow it; %s paths lead to it", rows, on,
		c.paths(start, effect))

	return v
}

// oneWayIn proves that the effect's trigger is the only way into the effect, by one row.
func (c *chart) oneWayIn() verdict {
	claims := c.spec.Claims
	v := verdict{id: "one-way-in"}
	v.sentence = fmt.Sprintf("%s is entered by %s only, by one row.", claims.Effect, claims.EffectOn)
	rows := 0

	for i, r := range c.spec.Rows {
		into, on := r.To == claims.Effect, r.On == claims.EffectOn
		switch {
		case into && on:
			if rows++; rows > 1 {
				v.faults = append(v.faults, rowName(c.spec, i)+" is a second way in")
			}
			v.witness = rowName(c.spec, i) + " is the only one"
		case into:
			v.faults = append(v.faults, fmt.Sprintf("%s enters %s by another trigger", rowName(c.spec, i), r.To))
		case on:
			v.faults = append(v.faults, fmt.Sprintf("%s is on %s and leads elsewhere", rowName(c.spec, i), r.On))
		}
	}

	if rows == 0 {
		v.faults = append(v.faults, fmt.Sprintf("no row enters %q by %q", claims.Effect, claims.EffectOn))
	}

	return v
}

// dominates proves that every path from the start to the effect passes a state: without it, the
// effect is out of reach.
func (c *chart) dominates(by State) verdict {
	claims := c.spec.Claims
	v := verdict{id: "dominates-" + string(by), sentence: fmt.Sprintf("Every path to %s passes %s.", claims.Effect, by)}
	v.faults, v.witness = c.cut(c.spec.Start(), claims.Effect, by)
	return v
}

func (c *chart) between(b Between) verdict {
	v := verdict{id: fmt.Sprintf("between-%s-%s", b.From, b.To)}
	v.sentence = fmt.Sprintf("Every path from %s to %s passes %s.", b.From, b.To, b.Via)
	v.faults, v.witness = c.cut(b.From, b.To, b.Via)
	return v
}

// cut shows that via lies on every path, or the path that avoids it. A claim that could not fail is
// a fault: there must be a path, and via must not be one of its ends.
func (c *chart) cut(from, to, via State) (faults []string, witness string) {
	start, end, middle := c.place(from), c.place(to), c.place(via)
	if start == nowhere || end == nowhere || middle == nowhere {
		return []string{fmt.Sprintf("%q, %q or %q is unknown", from, to, via)}, ""
	}
	if start == end || middle == start || middle == end {
		return []string{fmt.Sprintf("the claim %s, %s, %s says nothing: two of them are the same", from, via, to)}, ""
	}
	if !c.flood(start, nowhere).reached(end) {
		return []string{fmt.Sprintf("%s cannot be reached from %s", to, from)}, ""
	}
	without := c.flood(start, middle)
	if without.reached(end) {
		return []string{"without it: " + without.path(end)}, ""
	}
	return nil, fmt.Sprintf("without %s, %s leads only to %s; with it, %s paths", via, from,
		list(without.states()[1:]), c.paths(start, end))
}

// exits proves that each of some states offers each of some triggers.
func (c *chart) exits(i int, e Exits) verdict {
	v := verdict{id: fmt.Sprintf("exits-%d", i+1)}
	v.sentence = fmt.Sprintf("%s: each leaves by %s.", list(e.States), list(e.On))
	rows := 0
	for _, from := range e.States {
		for _, on := range e.On {
			if slices.ContainsFunc(c.spec.Rows, func(r SpecRow) bool { return r.From == from && r.On == on }) {
				rows++
			} else {
				v.faults = append(v.faults, fmt.Sprintf("%s does not leave by %s", from, on))
			}
		}
	}
	if len(e.States) == 0 || len(e.On) == 0 {
		v.faults = append(v.faults, "the claim names no state or no trigger")
	}
	v.witness = fmt.Sprintf("%d of %d rows found", rows, len(e.States)*len(e.On))
	return v
}

func (c *chart) soleEntry(into State) verdict {
	v := verdict{id: "sole-entry-" + string(into), sentence: fmt.Sprintf("Exactly one row enters %s.", into)}
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
