package fsm

import (
	"fmt"
	"slices"
	"strings"
)

// Mark is one step of a run's way through the machine.
type Mark struct {
	From State   `json:"from"`
	On   Trigger `json:"on"`
	To   State   `json:"to"`
}

// Marks is a run's way, in order. No marks draw the whole machine.
type Marks []Mark

// String gives the step as from -trigger-> to.
func (m Mark) String() string { return SpecRow{From: m.From, On: m.On, To: m.To}.String() }

// way says what a picture emphasizes: the steps of one run, or how many runs took each step.
type way struct {
	marked   bool
	steps    [][]int        // for each row, the numbers (from 1) of the steps that took it
	runs     []int          // for each row, how many runs took it; nil for the way of one run
	visited  map[State]bool // looked up, never ranged over
	arrivals map[State]int  // how many runs came to a state; looked up, never ranged over
	strange  Marks          // steps that the table does not have
}

func (s *Spec) way(m Marks) way {
	w := way{marked: len(m) > 0, steps: make([][]int, len(s.Rows)), visited: map[State]bool{}}
	for i, mark := range m {
		row := s.row(mark)
		if row < 0 {
			w.strange = append(w.strange, mark)
			continue
		}
		w.steps[row] = append(w.steps[row], i+1)
		w.visited[mark.From], w.visited[mark.To] = true, true
	}
	return w
}

func (s *Spec) wayOfRuns(runs map[Mark]int) way {
	w := way{marked: true, runs: make([]int, len(s.Rows)), visited: map[State]bool{}, arrivals: map[State]int{}}
	for i, r := range s.Rows {
		if w.runs[i] = runs[Mark{r.From, r.On, r.To}]; w.runs[i] > 0 {
			w.visited[r.From], w.visited[r.To] = true, true
			w.arrivals[r.To] += w.runs[i]
		}
	}
	return w
}

// taken reports whether a run took a row.
func (w *way) taken(row int) bool {
	if w.runs != nil {
		return w.runs[row] > 0
	}
	return len(w.steps[row]) > 0
}

// class chooses the look of a row or a state; own is its look in a picture of the whole machine.
func (w *way) class(taken bool, own string) string {
	switch {
	case !w.marked:
		return own
	case taken:
		return "taken"
	}
	return "faded"
}

// label is the trigger of a row with the numbers of the steps, or the number of runs, that took it.
func (w *way) label(on Trigger, row int) string {
	text := legible(string(on))
	switch {
	case !w.taken(row):
		return text
	case w.runs != nil:
		return fmt.Sprintf("%s %d", text, w.runs[row])
	}
	numbers := strings.Trim(fmt.Sprint(w.steps[row]), "[]")
	return text + " (" + strings.ReplaceAll(numbers, " ", ", ") + ")"
}

// tip says how many runs took a row; empty in a picture of one run.
func (w *way) tip(row int) string {
	if w.runs == nil {
		return ""
	}
	return fmt.Sprintf("\ntaken by %d", w.runs[row])
}

// thickness is the width of a row's line, in pixels.
func (w *way) thickness(row int) string {
	switch {
	case !w.taken(row):
		return "1.4"
	case w.runs != nil:
		return fmt.Sprintf("%.1f", 1.5+4.5*float64(w.runs[row])/float64(slices.Max(w.runs)))
	}
	return "2.6"
}
