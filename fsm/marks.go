package fsm

import (
	"fmt"
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

// way holds the parts that a picture emphasizes: the steps of one run.
type way struct {
	marked  bool
	steps   [][]int        // for each row, the numbers (from 1) of the steps that took it
	visited map[State]bool // looked up, never ranged over
	strange Marks          // steps that the table does not have
}

func (s *Spec) trackWay(m Marks) way {
	w := way{marked: len(m) > 0, steps: make([][]int, len(s.Rows)), visited: map[State]bool{}}
	for i, mark := range m {
		row := s.rowIndex(mark)
		if row < 0 {
			w.strange = append(w.strange, mark)
			continue
		}
		w.steps[row] = append(w.steps[row], i+1)
		w.visited[mark.From], w.visited[mark.To] = true, true
	}
	return w
}

// isTaken reports whether the run took a row.
func (w *way) isTaken(row int) bool { return len(w.steps[row]) > 0 }

// classOf chooses the look of a row or a state; own is its look in a picture of the whole machine.
func (w *way) classOf(taken bool, own string) string {
	switch {
	case !w.marked:
		return own
	case taken:
		return "taken"
	}
	return "faded"
}

// rowLabel is the trigger of a row with the numbers of the steps that took it.
func (w *way) rowLabel(on Trigger, row int) string {
	text := legibleText(string(on))
	if !w.isTaken(row) {
		return text
	}
	numbers := strings.Trim(fmt.Sprint(w.steps[row]), "[]")
	return text + " (" + strings.ReplaceAll(numbers, " ", ", ") + ")"
}
