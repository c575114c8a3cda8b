package fsm

import (
	"math/big"
	"slices"
	"strings"
)

// nowhere stands for no place and no row.
const nowhere = -1

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
		from, to := c.place(r.From), c.place(r.To)
		if from == nowhere || to == nowhere {
			continue
		}
		c.out[from] = append(c.out[from], i)
		c.in[to] = append(c.in[to], i)
	}
	return c
}

// place is the rank of a state, or nowhere.
func (c *chart) place(s State) int {
	if i, ok := c.rank[s]; ok {
		return i
	}
	return nowhere
}

func (c *chart) state(place int) State { return c.spec.Places[place].State }
func (c *chart) target(row int) int    { return c.place(c.spec.Rows[row].To) }

// flood holds the places that can be reached from one place.
type flood struct {
	c     *chart
	start int
	seen  []bool
	via   []int // the row by which each place was first reached; nowhere for the start
}

// flood walks breadth first from start and never enters without.
func (c *chart) flood(start, without int) flood {
	f := flood{c: c, start: start, seen: make([]bool, len(c.out)), via: make([]int, len(c.out))}
	for i := range f.via {
		f.via[i] = nowhere
	}
	if start == nowhere || start == without {
		return f
	}
	f.seen[start] = true
	for queue := []int{start}; len(queue) > 0; queue = queue[1:] {
		for _, row := range c.out[queue[0]] {
			next := c.target(row)
			if next == without || f.seen[next] {
				continue
			}
			f.seen[next], f.via[next] = true, row
			queue = append(queue, next)
		}
	}
	return f
}

// reached reports whether a place was reached.
func (f flood) reached(place int) bool { return place != nowhere && f.seen[place] }

// path writes a shortest way to a place that was reached.
func (f flood) path(place int) string {
	var steps []string
	for place != f.start {
		row := f.c.spec.Rows[f.via[place]]
		steps = append(steps, " -"+string(row.On)+"-> "+string(row.To))
		place = f.c.place(row.From)
	}
	slices.Reverse(steps)
	return string(f.c.state(f.start)) + strings.Join(steps, "")
}

// states lists the reached states, by rank.
func (f flood) states() []State {
	var all []State
	for place, seen := range f.seen {
		if seen {
			all = append(all, f.c.state(place))
		}
	}
	return all
}

// order is a topological order, lower ranks first where there is a choice; it is shorter than the
// places if there is a cycle.
func (c *chart) order() []int {
	waiting := make([]int, len(c.in))
	for i := range c.in {
		waiting[i] = len(c.in[i])
	}
	var order []int
	for {
		next := slices.Index(waiting, 0)
		if next < 0 {
			return order
		}
		waiting[next] = nowhere
		order = append(order, next)
		for _, row := range c.out[next] {
			waiting[c.target(row)]--
		}
	}
}

// paths counts the different ways from one place to another, as text: with a cycle there is no
// number.
func (c *chart) paths(from, to int) string {
	order := c.order()
	if len(order) < len(c.out) || from == nowhere || to == nowhere {
		return "uncounted"
	}
	ways := make([]*big.Int, len(c.out))
	for i := range ways {
		ways[i] = new(big.Int)
	}
	ways[from].SetInt64(1)
	for _, place := range order {
		for _, row := range c.out[place] {
			ways[c.target(row)].Add(ways[c.target(row)], ways[place])
		}
	}
	return ways[to].String()
}

// longest is the greatest number of rows on any path from the start, or nowhere if there is a
// cycle.
func (c *chart) longest() int {
	order := c.order()
	if len(order) < len(c.out) {
		return nowhere
	}
	far, most := make([]int, len(c.out)), 0
	for i := range far {
		far[i] = nowhere
	}
	if len(far) > 0 {
		far[0] = 0
	}
	for _, place := range order {
		for _, row := range c.out[place] {
			if far[place] != nowhere {
				far[c.target(row)] = max(far[c.target(row)], far[place]+1)
				most = max(most, far[c.target(row)])
			}
		}
	}
	return most
}
