package states

import "pgfsm/fsm"

// ReplaceStage puts another stage in a state's place until the returned function is called.
func ReplaceStage(at fsm.State, make func(Stage) Stage) func() {
	was := stages[at]
	stages[at] = make(was)
	return func() { stages[at] = was }
}
