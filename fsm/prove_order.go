package fsm

import (
	"fmt"
	"slices"
)

func (c *chart) proveAcyclic() examination {
	v := examination{id: "acyclic", sentence: "No path visits a state twice."}
	order := c.topologicalOrder()
	var states []State
	for _, place := range order {
		states = append(states, c.stateAt(place))
	}
	v.witness = fmt.Sprintf("topological order: %s; the longest path has %d rows", list(states), c.longestPath())
	// Every place has an order, so there is no cycle.
	if len(order) == len(c.out) {
		return v
	}
	for place := range c.out {
		for _, row := range c.out[place] {
			if back := c.floodFrom(c.targetOf(row), noIndex); back.reaches(place) && !slices.Contains(order, place) {
				r := c.spec.Rows[row]
				v.faults = append(v.faults, fmt.Sprintf("%s -%s-> %s", r.From, r.On, back.pathTo(place)))
				break
			}
		}
	}
	return v
}

func (c *chart) proveRanksRise() examination {
	v := examination{id: "ranks-rise",
		sentence: "Every row leads to a place further down the table: there is no way back."}
	for i, r := range c.spec.Rows {
		source, target := c.rankOf(r.From), c.rankOf(r.To)
		if source != noIndex && target != noIndex && target <= source {
			v.faults = append(v.faults, fmt.Sprintf("%s goes from rank %d to rank %d", rowName(c.spec, i), source+1,
				target+1))
		}
	}
	v.witness = fmt.Sprintf("all %d rows rise in rank 1 to %d", len(c.spec.Rows), len(c.spec.Places))
	return v
}

func (c *chart) proveTerminalsClosed() examination {
	v := examination{id: "terminals-closed", sentence: "No row leaves a terminal state."}
	var terminals []State
	for place, p := range c.spec.Places {
		if !p.Terminal {
			continue
		}
		terminals = append(terminals, p.State)
		for _, row := range c.out[place] {
			v.faults = append(v.faults, rowName(c.spec, row)+" leaves a terminal state")
		}
	}
	if len(terminals) == 0 {
		v.faults = append(v.faults, "there is no terminal state")
	}
	v.witness = fmt.Sprintf("no row leaves %s", list(terminals))
	return v
}

func (c *chart) proveReachesTerminal() examination {
	v := examination{id: "reaches-terminal", sentence: "From every state a terminal state can be reached."}
	most := 0
	for place, p := range c.spec.Places {
		f := c.floodFrom(place, noIndex)
		end := slices.IndexFunc(c.spec.Places, func(o Place) bool { return o.Terminal && f.reaches(c.rankOf(o.State)) })
		if end < 0 {
			v.faults = append(v.faults, fmt.Sprintf("from %s no terminal state can be reached", p.State))
		}
		most = max(most, len(f.reachedStates()))
	}
	v.witness = fmt.Sprintf("searched from each of %d states; the widest search saw %d", len(c.spec.Places), most)
	return v
}

func (c *chart) proveReachable() examination {
	v := examination{id: "reachable", sentence: "Every state can be reached from the start."}
	for place, seen := range c.floodFrom(c.rankOf(c.spec.Start()), noIndex).seen {
		if !seen {
			v.faults = append(v.faults, fmt.Sprintf("%s cannot be reached from %s", c.stateAt(place), c.spec.Start()))
		}
	}
	v.witness = fmt.Sprintf("all %d states reached from %s", len(c.spec.Places), c.spec.Start())
	return v
}
