package fsm_test

import (
	"errors"

	"pgfsm/fsm"
	"pgfsm/states"
)

// subject is what the guards of the test table look at.
type subject struct {
	refuse string // the guard that refuses
}

var errRefused = errors.New("the test says no")

func guard(name, why string) fsm.Guard[*subject] {
	return fsm.Guard[*subject]{Name: name, Why: why, Allow: func(s *subject) error {
		if s.refuse == name {
			return errRefused
		}
		return nil
	}}
}

// realistic is the machine of package states with guards of this test.
func realistic() fsm.Table[*subject] {
	spec := states.Table().Spec()
	t := fsm.Table[*subject]{Name: spec.Name, Places: spec.Places, Claims: spec.Claims}
	for _, r := range spec.Rows {
		t.Rows = append(t.Rows, fsm.Row[*subject]{From: r.From, On: r.On, Guard: guard(r.Guard, r.GuardWhy), To: r.To, Why: r.Why})
	}
	return t
}

// byApproval is a run that goes the longest way.
func byApproval() fsm.Marks {
	return fsm.Marks{
		{From: "received", On: "screen", To: "screened"}, {From: "screened", On: "discover", To: "discovered"},
		{From: "discovered", On: "plan", To: "planned"}, {From: "planned", On: "validate", To: "validated"},
		{From: "validated", On: "authorize", To: "authorized"}, {From: "authorized", On: "assess", To: "assessed"},
		{From: "assessed", On: "hold", To: "pending"}, {From: "pending", On: "approve", To: "approved"},
		{From: "approved", On: "permit", To: "permitted"}, {From: "permitted", On: "dispatch", To: "dispatched"},
		{From: "dispatched", On: "return", To: "executed"}, {From: "executed", On: "parse", To: "typed"},
		{From: "typed", On: "answer", To: "answered"},
	}
}

// byBlock is a run that a gate stopped.
func byBlock() fsm.Marks {
	return append(byApproval()[:4:4], fsm.Mark{From: "validated", On: "block", To: "blocked"})
}
