package fsm

import (
	"math/big"
	"slices"
	"strings"
)

// noIndex stands for no place and no row.
const noIndex = -1

// chart is a Spec as a graph: nodes are places by rank, edges are rows by index. Rows that name an
// unknown place are left out; a proof of its own reports them.
type chart struct {
	spec *Spec
	rank map[State]int // looked up, never ranged over
	out  [][]int       // rows that leave each place, in table order
	in   [][]int       // rows that enter each place, in table order
}

func newChart(s *Spec) *chart {
	c := &chart{
		spec: s,
		rank: map[State]int{},
		out:  make([][]int, len(s.Places)),
		in:   make([][]int, len(s.Places)),
	}
	for i, p := range s.Places {
		if _, twice := c.rank[p.State]; !twice {
			c.rank[p.State] = i
		}
	}
	for i, r := range s.Rows {
		source, target := c.rankOf(r.From), c.rankOf(r.To)
		if source == noIndex || target == noIndex {
			continue
		}
		c.out[source] = append(c.out[source], i)
		c.in[target] = append(c.in[target], i)
	}
	return c
}

// rankOf is the rank of a state, or nowhere.
func (c *chart) rankOf(s State) int {
	if i, ok := c.rank[s]; ok {
		return i
	}
	return noIndex
}

func (c *chart) stateAt(place int) State { return c.spec.Places[place].State }
func (c *chart) targetOf(row int) int    { return c.rankOf(c.spec.Rows[row].To) }

// flood holds the places that can be reached from one place.
type flood struct {
	c     *chart
	start int
	seen  []bool
	via   []int // the row by which each place was first reached; nowhere for the start
}

// floodFrom walks breadth first from start and never enters without.
func (c *chart) floodFrom(start, without int) flood {
	f := flood{c: c, start: start, seen: make([]bool, len(c.out)), via: make([]int, len(c.out))}
	for i := range f.via {
		f.via[i] = noIndex
	}
	if start == noIndex || start == without {
		return f
	}
	f.seen[start] = true
	for queue := []int{start}; len(queue) > 0; queue = queue[1:] {
		for _, row := range c.out[queue[0]] {
			next := c.targetOf(row)
			if next == without || f.seen[next] {
				continue
			}
			f.seen[next], f.via[next] = true, row
			queue = append(queue, next)
		}
	}
	return f
}

// reaches reports whether a place was reached.
func (f flood) reaches(place int) bool { return place != noIndex && f.seen[place] }

// pathTo writes a shortest way to a place that was reached.
func (f flood) pathTo(place int) string {
	var steps []string
	for place != f.start {
		row := f.c.spec.Rows[f.via[place]]
		steps = append(steps, " -"+string(row.On)+"-> "+string(row.To))
		place = f.c.rankOf(row.From)
	}
	slices.Reverse(steps)
	return string(f.c.stateAt(f.start)) + strings.Join(steps, "")
}

// reachedStates lists the reached states, by rank.
func (f flood) reachedStates() []State {
	var states []State
	for place, seen := range f.seen {
		if seen {
			states = append(states, f.c.stateAt(place))
		}
	}
	return states
}

// topologicalOrder is a topological order, lower ranks first where there is a choice; it is shorter
// than the places if there is a cycle.
func (c *chart) topologicalOrder() []int {
	waiting := make([]int, len(c.in))
	for i := range c.in {
		waiting[i] = len(c.in[i])
	}
	var order []int
	for {
		// The place of lowest rank that no row enters any more.
		next := slices.Index(waiting, 0)
		if next < 0 {
			return order
		}
		waiting[next] = noIndex
		order = append(order, next)
		for _, row := range c.out[next] {
			waiting[c.targetOf(row)]--
		}
	}
}

// countPaths counts the different ways from one place to another, as text: with a cycle there is no
// number.
func (c *chart) countPaths(from, to int) string {
	order := c.topologicalOrder()
	if len(order) < len(c.out) || from == noIndex || to == noIndex {
		return "uncounted"
	}
	ways := make([]*big.Int, len(c.out))
	for i := range ways {
		ways[i] = new(big.Int)
	}
	// Big numbers, because ways multiply at every branch.
	ways[from].SetInt64(1)
	for _, place := range order {
		for _, row := range c.out[place] {
			ways[c.targetOf(row)].Add(ways[c.targetOf(row)], ways[place])
		}
	}
	return ways[to].String()
}

// longestPath is the greatest number of rows on any path from the start, or nowhere if there is a
// cycle.
func (c *chart) longestPath() int {
	order := c.topologicalOrder()
	if len(order) < len(c.out) {
		return noIndex
	}
	far, most := make([]int, len(c.out)), 0
	for i := range far {
		far[i] = noIndex
	}
	if len(far) > 0 {
		far[0] = 0
	}
	for _, place := range order {
		for _, row := range c.out[place] {
			if far[place] != noIndex {
				far[c.targetOf(row)] = max(far[c.targetOf(row)], far[place]+1)
				most = max(most, far[c.targetOf(row)])
			}
		}
	}
	return most
}
