package ledger

import (
	"testing"

	"pgfsm/fsm"
	"pgfsm/states"
)

// A place is taken once, by a run with a call, before anything was decided about it.
func TestAPlaceIsTakenOnce(t *testing.T) {
	for _, c := range []struct {
		name string
		r    RunRow
		ok   bool
	}{
		{"fresh", RunRow{Status: Proposed, State: states.Received, Tool: "t", Definition: "d"}, true},
		{"without-a-call", RunRow{Status: Proposed, State: states.Received}, false},
		{"call-that-nothing-checked", RunRow{Status: Proposed, State: states.Received, Tool: "t"}, false},
		{"twice", RunRow{Status: Proposed, State: states.Validated, Tool: "t", Definition: "d"}, false},
		{"decided", RunRow{Status: Allowed, State: states.Received, Tool: "t", Definition: "d"}, false},
		{"held", RunRow{Status: Pending, State: states.Pending, Tool: "t", Definition: "d"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &callReserved{record: record{Steps: make([]fsm.Trigger, 4)}}
			err := p.applyTo(&c.r, &Event{})
			if (err == nil) != c.ok || c.ok && (c.r.State != states.Validated || c.r.Steps != 4) {
				t.Errorf("apply() = %v, %+v", err, c.r)
			}
		})
	}
}
