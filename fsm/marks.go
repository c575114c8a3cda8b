package fsm

// Mark is one step of a run's way through the machine.
type Mark struct {
	From State   `json:"from"`
	On   Trigger `json:"on"`
	To   State   `json:"to"`
}

// Marks is a run's way, in order. No marks draw the whole machine.
type Marks []Mark

// way is what pictures need to know of the marks.
type way struct {
	steps   [][]int        // for each row, the numbers (from 1) of the steps that took it
	visited map[State]bool // looked up, never ranged over
	strange Marks          // steps that the table does not have
}

func (s *Spec) way(m Marks) way {
	w := way{steps: make([][]int, len(s.Rows)), visited: map[State]bool{}}
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

// String gives the step as from -trigger-> to.
func (m Mark) String() string { return SpecRow{From: m.From, On: m.On, To: m.To}.String() }
