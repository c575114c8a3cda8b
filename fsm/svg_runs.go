package fsm

import (
	"slices"
	"strconv"
)

// widestWire is the width of the wire that the most runs took, in pixels.
const widestWire = 6

// SVGRuns draws the machine with the number of runs that took each step: the more runs, the wider the wire. What no run took is
// faded. The drawing is for a page that has [SVGStyle], and has neither a style sheet nor ids of its own. Steps that the table
// does not have are left out.
func SVGRuns(s *Spec, runs map[Mark]int) []byte {
	byRow := make([]int, len(s.Rows))
	for i, r := range s.Rows {
		byRow[i] = runs[Mark{r.From, r.On, r.To}]
	}
	d := &drawing{layout: newLayout(s, nil, byRow), marked: true}
	return d.draw("the more runs took a wire, the wider it is")
}

// runsOf is how many runs took the step of a wire.
func (l *layout) runsOf(w *wire) int {
	if l.runs == nil {
		return 0
	}
	return l.runs[w.row]
}

// runWidth is the width of a wire that runs took.
func (l *layout) runWidth(runs int) string {
	width := 1.5 + (widestWire-1.5)*float64(runs)/float64(max(slices.Max(l.runs), runs))
	return strconv.FormatFloat(width, 'f', 1, 64)
}

// arrivals is how many runs came to a place.
func (l *layout) arrivals(p State) (n int) {
	for i, runs := range l.runs {
		if l.chart.spec.Rows[i].To == p {
			n += runs
		}
	}
	return n
}

// reached reports whether a run was in a place.
func (l *layout) reached(p State) bool {
	for i, runs := range l.runs {
		if r := l.chart.spec.Rows[i]; runs > 0 && (r.From == p || r.To == p) {
			return true
		}
	}
	return false
}
