package gates

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"pgfsm/fsm"
	"pgfsm/fsm/fsmtest"
	"pgfsm/states"
)

// mutating compiles broken copies of the machine's table: the compiler must refuse each of them (INV-6, and the order of the
// other gates).
func mutating(e *evaluation) (Suite, error) {
	t := states.Table()
	if err := e.subject.compile(t); err != nil {
		return Suite{}, fmt.Errorf("the table itself is refused: %w", err)
	}
	mutants := append(fsmtest.Mutants(t), backwards(t)...)
	s := Suite{Cases: len(mutants), Counted: "broken copies of the machine's table"}
	for _, m := range mutants {
		kind, _, _ := strings.Cut(m.Name, " ")
		at := slices.IndexFunc(s.Classes, func(c Class) bool { return c.Class == kind })
		if at < 0 {
			at = len(s.Classes)
			s.Classes = append(s.Classes, Class{Class: kind, ByRule: make(map[string]int)})
		}
		c := &s.Classes[at]
		c.Cases++
		if rule := ruleOf(e.subject.compile(m.Table)); rule != "" {
			c.ByRule[rule]++
			s.Passed++
			continue
		}
		c.Slips++
		s.slip(m.Name, []byte(m.Name), "refused", "compiles")
	}
	return s, nil
}

// ruleOf names the proof that refused a table; it is empty if none did.
func ruleOf(err error) string {
	var mistake *fsm.Mistake
	switch {
	case err == nil:
		return ""
	case errors.As(err, &mistake):
		return mistake.Rule
	}
	return "error"
}

type mutant = fsmtest.Mutant[*states.Run]

// backwards makes tables with a row that leads back, or out of a terminal state.
func backwards(t fsm.Table[*states.Run]) (all []mutant) {
	free := fsm.Guard[*states.Run]{Name: "free", Why: "A mutant lets everything pass.", Allow: func(*states.Run) error { return nil }}
	for i, from := range t.Places {
		for j, to := range t.Places {
			kind := "back"
			switch {
			case from.Terminal:
				kind = "leave"
			case j > i:
				continue
			}
			row := fsm.Row[*states.Run]{From: from.State, On: "mutate", Guard: free, To: to.State, Why: "A mutant's row."}
			m := mutant{Name: fmt.Sprintf("%s from %s to %s", kind, from.State, to.State), Table: t}
			m.Table.Rows = append(slices.Clone(t.Rows), row)
			all = append(all, m)
		}
	}
	return all
}
