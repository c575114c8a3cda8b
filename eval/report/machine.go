package report

import (
	"cmp"
	"html/template"
	"slices"

	"pgfsm/fsm"
)

// An edge is a row of the machine's table, with how many runs took it.
type edge struct {
	fsm.Mark
	Runs int
}

// draw draws the machine with the runs that took each edge. The drawing holds numbers and the machine's own table, of which
// package fsm escapes every text: no text of a file is in it.
func draw(s *fsm.Spec, edges []edge) template.HTML {
	runs := make(map[fsm.Mark]int)
	for _, e := range edges {
		runs[e.Mark] += e.Runs
	}
	return template.HTML(fsm.SVGRuns(s, runs))
}

// byTable puts edges into the order of the machine's table, and edges that the table does not have behind them, by name.
func byTable(s *fsm.Spec, edges []edge) {
	rank := func(e edge) int {
		i := slices.IndexFunc(s.Rows, func(r fsm.SpecRow) bool { return r.From == e.From && r.On == e.On && r.To == e.To })
		if i < 0 {
			return len(s.Rows)
		}
		return i
	}
	slices.SortStableFunc(edges, func(a, b edge) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a.From, b.From), cmp.Compare(a.On, b.On), cmp.Compare(a.To, b.To))
	})
}
