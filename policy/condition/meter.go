package condition

import (
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// CEL charges a comparison or pattern after it ran, and by the overload that the checker chose.
// That is too late if its work is the product of its operands, and too little (one unit) for
// operands of dynamic type. So this file extends CEL's cost model.
const (
	textPerUnit = 64 // bytes of text that are compared for one unit
	instPerUnit = 8  // instructions of a pattern times bytes of text for one unit
)

// A meter charges the cost tracker of an evaluation. The zero meter charges nothing.
type meter struct{ tracker *cost.Tracker }

// spend charges units. If the budget does not have them, it panics like CEL's tracker; CEL turns
// the panic into an error.
func (m meter) spend(units uint64) {
	switch {
	case m.tracker == nil:
	case units == 1:
		m.tracker.Qualify(0)
	default:
		m.tracker.EvalUnary(nil, 0, work{}, types.Uint(units), nil)
	}
}

// work is the call by which a meter charges units.
type work struct{}

const workID = "pgfsm_work"

// Function implements [cost.Call].
func (work) Function() string { return workID }

// OverloadID implements [cost.Call].
func (work) OverloadID() string { return workID }

// estimator estimates the cost of functions for CEL.
type estimator struct{}

// CallCost implements [cost.ActualCostEstimator]: a call whose overload is not known costs the size
// of its operands and of its result, and so does a sum of lists, which CEL makes without copying
// them: a list can double with each sum. All other functions cost what CEL estimates.
func (estimator) CallCost(_, overload string, args []ref.Val, result ref.Val) *uint64 {
	switch overload {
	case workID:
		units := uint64(args[0].(types.Uint))
		return &units
	case "", overloads.AddList:
		units := 1 + valueSize(result)
		for _, v := range args {
			units += valueSize(v) / 10
		}
		return &units
	}
	return nil
}

var _ cost.ActualCostEstimator = estimator{}

// valueSize returns the bytes of a text, or the elements of a list or map, without those of its
// elements.
func valueSize(v ref.Val) uint64 {
	if n := textSize(v); n > 0 {
		return n
	}
	if s, ok := v.(traits.Sizer); ok {
		if n, ok := s.Size().(types.Int); ok {
			return uint64(n)
		}
	}
	return 0
}

func textSize(v ref.Val) uint64 {
	switch s := v.(type) {
	case types.String:
		return uint64(len(s))
	case types.Bytes:
		return uint64(len(s))
	}
	return 0
}
