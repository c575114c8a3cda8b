package present

import (
	"fmt"
	"slices"
	"strings"

	"pgfsm/fsm"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// A Track shows how far a run came on the way of a call. See [states.Phases].
type Track []TrackPhase

// A TrackPhase is a phase of the way, with its states.
type TrackPhase struct {
	Name  string
	Cells []TrackCell
}

// A TrackCell is a state of the way.
type TrackCell struct {
	State fsm.State
	Class TrackClass
}

// A TrackClass says what a state is for a run.
type TrackClass string

// The classes.
const (
	TrackReached TrackClass = "ok"
	TrackWaits   TrackClass = "wait" // the run is there now, or nobody knows how it ended
	TrackEnded   TrackClass = "bad"
	TrackAsked   TrackClass = "end" // the planner asked back
	TrackAhead   TrackClass = "todo"
)

// TrackClasses returns all classes.
func TrackClasses() []TrackClass {
	return []TrackClass{TrackReached, TrackWaits, TrackEnded, TrackAsked, TrackAhead}
}

// words describes the classes for people.
var words = map[TrackClass]string{
	TrackReached: "reached", TrackWaits: "waits here", TrackEnded: "ended here", TrackAsked: "asked back", TrackAhead: "not reached",
}

// Words describes the class.
func (c TrackClass) Words() string { return words[c] }

// NewTrack returns the track of a run. The way of a call that was not held has no approval.
func NewTrack(r *Run) (t Track) {
	var way []*TrackCell
	for _, phase := range states.Phases(r.Kind) {
		if r.Binding == "" && phase.States[0] == states.Pending {
			continue
		}
		cells := make([]TrackCell, len(phase.States))
		for i, state := range phase.States {
			cells[i] = TrackCell{state, TrackAhead}
			way = append(way, &cells[i])
		}
		t = append(t, TrackPhase{phase.Name, cells})
	}

	state := fsm.State(r.State)
	if state == states.Answered { // without the states of the result that the run did not need
		cells := &t[len(t)-1].Cells
		end := len(*cells) - 1
		skipped := min(max(len(way)-r.Steps, 0), end)
		*cells, way = slices.Delete(*cells, end-skipped, end), way[:len(way)-skipped]
	}
	early := state == states.Blocked || state == states.Failed || state == states.NeedsInfo || state == states.Unreported
	reached := min(max(r.Steps, 0), len(way))
	if early {
		reached = max(reached-1, 0) // the last step ended the run
	}
	for _, cell := range way[:reached] {
		cell.Class = TrackReached
	}
	switch last := way[max(reached-1, 0)]; {
	case state == states.NeedsInfo:
		last.Class = TrackAsked
	case early:
		if reached < len(way) && endsBefore(way[reached].State) {
			last = way[reached]
		}
		if last.Class = TrackEnded; r.Status == ledger.Indeterminate || r.Status == ledger.Unreported {
			last.Class = TrackWaits
		}
	case r.Status == ledger.Denied || r.Status == ledger.Expired:
		last.Class = TrackEnded // the run itself ends later
	case r.Status == ledger.Approved && state == states.Pending && reached < len(way):
		way[reached].Class = TrackWaits
	case r.Ended == "" && reached > 0:
		last.Class = TrackWaits
	}
	return t
}

// trackOf returns the track of a run that is not read from a ledger.
func trackOf(run *states.Run, o *states.Outcome) Track {
	r := Run{Kind: run.Request().Kind, State: o.State, Steps: len(run.Trail()) - 1}
	if h := run.HeldCall(); h != nil {
		r.Binding = h.Binding
	}
	if !o.Waits() {
		r.Ended = o.Type
	}
	if o.Code == policy.CodeIndeterminate {
		r.Status = ledger.Indeterminate
	}
	return NewTrack(&r)
}

// endsBefore reports whether a run that does not come to a state ended at the gate of this state.
func endsBefore(state fsm.State) bool {
	switch state {
	case states.Pending, states.Approved, states.Permitted, states.Dispatched, states.Executed, states.Delegated, states.Reported:
		return false
	}
	return true
}

// Text describes the track in one line. mark writes the sign of a state.
func (t Track) Text(mark func(c TrackClass, sign string) string) string {
	signs := map[TrackClass]string{TrackReached: "■", TrackWaits: "▣", TrackEnded: "✗", TrackAsked: "?", TrackAhead: "□"}
	var b strings.Builder
	for _, phase := range t {
		b.WriteString(phase.Name + " ")
		for _, cell := range phase.Cells {
			b.WriteString(mark(cell.Class, signs[cell.Class]))
		}
		b.WriteString("  ")
	}
	return b.String() + t.Place()
}

// Place names the state where the run is or ended, with the number of states it reached.
func (t Track) Place() string {
	reached, all, place := 0, 0, TrackCell{}
	for _, phase := range t {
		for _, cell := range phase.Cells {
			if all++; cell.Class != TrackAhead {
				reached++
				place = cell
			}
		}
	}
	if place.Class == TrackReached || place.Class == "" {
		return fmt.Sprintf("%d of %d states", reached, all)
	}
	return fmt.Sprintf("%d of %d states: %s: %s", reached, all, place.State, place.Class.Words())
}
