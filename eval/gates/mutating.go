package gates

import (
	"fmt"
	"slices"

	"pgfsm/fsm"
	"pgfsm/fsm/fsmtest"
	"pgfsm/states"
)

// mutantTrials compiles broken copies of the machine's table: the compiler must refuse each of them
// (INV-6, and the order of the other gates).
func mutantTrials(e *evaluation) ([]trial, error) {
	t := states.Table()
	if err := e.subject.compile(t); err != nil {
		return nil, fmt.Errorf("the table itself is refused: %w", err)
	}
	var trials []trial
	for _, m := range append(fsmtest.Mutants(t), backwardMutants(t)...) {
		trials = append(trials, trial{m.Name, "refused", []byte(m.Name), func([]byte) string {
			if err := e.subject.compile(m.Table); err != nil {
				return "refused"
			}
			return "compiles"
		}})
	}
	return trials, nil
}

type mutant = fsmtest.Mutant[*states.Run]

// backwardMutants makes tables with a row that leads back, or out of a terminal state.
func backwardMutants(t fsm.Table[*states.Run]) (mutants []mutant) {
	free := fsm.Guard[*states.Run]{Name: "free", Why: "A mutant lets everything pass.",
		Allow: func(*states.Run) error { return nil }}
	for i, from := range t.Places {
		for j, to := range t.Places {
			kind := "back"
			switch {
			case from.Terminal:
				kind = "leave"
			case j > i:
				continue
			}
			row := fsm.Row[*states.Run]{
				From:  from.State,
				On:    "mutate",
				Guard: free,
				To:    to.State,
				Why:   "A mutant's row.",
			}
			m := mutant{Name: fmt.Sprintf("%s from %s to %s", kind, from.State, to.State), Table: t}
			m.Table.Rows = append(slices.Clone(t.Rows), row)
			mutants = append(mutants, m)
		}
	}
	return mutants
}
