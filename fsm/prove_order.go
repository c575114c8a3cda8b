package fsm

import (
	"fmt"
	"slices"
)

func (c *chart) acyclic() verdict {
	v := verdict{id: "acyclic", sentence: "No path visits a state twice."}
	order := c.order()
	var states []State
	for _, place := range order {
		states = append(states, c.state(place))
	}
	v.witness = fmt.Sprintf("topological order: %s; the longest path has %d rows", list(states), c.longest())
	if len(order) == len(c.out) {
		return v
	}
	for place := range c.out {
		for _, row := range c.out[place] {
			if back := c.flood(c.target(row), nowhere); back.reached(place) && !slices.Contains(order, place) {
				r := c.spec.Rows[row]
				v.faults = append(v.faults, fmt.Sprintf("%s -%s-> %s", r.From, r.On, back.path(place)))
				break
			}
		}
	}
	return v
}

func (c *chart) ranksRise() verdict {
	v := verdict{id: "ranks-rise", sentence: "Every row leads to a place further down the table: there is no way back."}
	for i, r := range c.spec.Rows {
		from, to := c.place(r.From), c.place(r.To)
		if from != nowhere && to != nowhere && to <= from {
			v.faults = append(v.faults, fmt.Sprintf("%s goes from rank %d to rank %d", rowName(c.spec, i), from+1,
				to+1))
		}
	}
	v.witness = fmt.Sprintf("all %d rows rise in rank 1 to %d", len(c.spec.Rows), len(c.spec.Places))
	return v
}

func (c *chart) terminalsClosed() verdict {
	v := verdict{id: "terminals-closed", sentence: "No row leaves a terminal state."}
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

func (c *chart) reachesTerminal() verdict {
	v := verdict{id: "reaches-terminal", sentence: "From every state a terminal state can be reached."}
	most := 0
	for place, p := range c.spec.Places {
		f := c.flood(place, nowhere)
		end := slices.IndexFunc(c.spec.Places, func(o Place) bool { return o.Terminal && f.reached(c.place(o.State)) })
		if end < 0 {
			v.faults = append(v.faults, fmt.Sprintf("from %s no terminal state can be reached", p.State))
		}
		most = max(most, len(f.states()))
	}
	v.witness = fmt.Sprintf("searched from each of %d states; the widest search saw %d", len(c.spec.Places), most)
	return v
}

func (c *chart) reachable() verdict {
	v := verdict{id: "reachable", sentence: "Every state can be reached from the start."}
	for place, seen := range c.reached() {
		if !seen {
			v.faults = append(v.faults, fmt.Sprintf("%s cannot be reached from %s", c.state(place), c.spec.Start()))
		}
	}
	v.witness = fmt.Sprintf("all %d states reached from %s", len(c.spec.Places), c.spec.Start())
	return v
}

// reached reports for each place whether the start leads there.
func (c *chart) reached() []bool { return c.flood(c.place(c.spec.Start()), nowhere).seen }
