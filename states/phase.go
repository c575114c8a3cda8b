package states

import "pgfsm/fsm"

// A Phase is a part of the way of a call, for people.
type Phase struct {
	Name   string
	States []fsm.State
}

// Phases divides the way of a call from its request to its answer, or to its report if the client makes the
// call itself. The first state and those in which a run ends otherwise belong to no phase.
func Phases(kind string) []Phase {
	if Delegates(kind) {
		return []Phase{
			{"Gates", []fsm.State{Screened, Discovered, Planned, Validated, Authorized, Assessed}},
			{"Approval", []fsm.State{Pending, Approved}},
			{"Permit", []fsm.State{Permitted, Delegated}},
			{"Report", []fsm.State{Reported}},
		}
	}
	return []Phase{
		{"Gates", []fsm.State{Screened, Discovered, Planned, Validated, Authorized, Assessed}},
		{"Approval", []fsm.State{Pending, Approved}},
		{"Call", []fsm.State{Permitted, Dispatched, Executed}},
		{"Result", []fsm.State{Typed, Summarized, Answered}},
	}
}
