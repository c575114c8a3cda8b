package condition

import (
	"strings"

	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// CEL charges a function after it ran, and by the overload that the checker chose. That is too late for a function whose work or result is the product of
// its operands, and too little (one unit) for operands of dynamic type. So this file extends CEL's cost model.
const (
	textPerUnit   = 64 // bytes of text that are compared for one unit
	searchPerUnit = 8  // bytes of text that are compared one by one for one unit
	instPerUnit   = 8  // instructions of a pattern times bytes of text for one unit
)

// A meter charges the cost tracker of an evaluation. The zero meter charges nothing.
type meter struct{ tracker *cost.Tracker }

// spend charges units. If the budget does not have them, it panics like CEL's tracker; CEL turns the panic into an error.
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

// CallCost implements [cost.ActualCostEstimator]: a call whose overload is not known costs the size of its operands and of its result, and so does a sum of
// lists, which CEL makes without copying them: a list can double with each sum. All other functions cost what CEL estimates.
func (estimator) CallCost(_, overload string, args []ref.Val, result ref.Val) *uint64 {
	switch overload {
	case workID:
		units := uint64(args[0].(types.Uint))
		return &units
	case "", overloads.AddList:
		units := 1 + size(result)
		for _, v := range args {
			units += size(v) / 10
		}
		return &units
	}
	return nil
}

var _ cost.ActualCostEstimator = estimator{}

// size returns the bytes of a text, or the elements of a list or map, without those of its elements.
func size(v ref.Val) uint64 {
	switch s := v.(type) {
	case types.String, types.Bytes:
		return textSize(v)
	case traits.Sizer:
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

// weigh charges for each value in v, and for each byte of text, all the way down.
func (m meter) weigh(v ref.Val) {
	m.spend(1 + size(v))
	switch x := v.(type) {
	case traits.Lister:
		for i := range x.Size().(types.Int) {
			m.weigh(x.Get(i))
		}
	case traits.Mapper:
		for it := x.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			m.weigh(key)
			m.weigh(x.Get(key))
		}
	}
}

// bounds charge functions of CEL's libraries before they run, if their work or result can be far larger than their operands. Operands of a wrong type cost
// nothing here; the call fails.
var bounds = map[string]func(m meter, args operands){
	"indexOf":     chargeSearch,
	"lastIndexOf": chargeSearch,
	"replace": func(m meter, args operands) {
		s, _ := args[0].(types.String)
		old, _ := args[1].(types.String)
		with, _ := args[2].(types.String)
		times := uint64(strings.Count(string(s), string(old)))
		m.spend(1 + uint64(len(s)) + times*uint64(len(with)))
	},
	"join": func(m meter, args operands) {
		m.weigh(args[0])
		if args[1] != nil {
			m.spend(1 + size(args[0])*textSize(args[1]))
		}
	},
	"format": func(m meter, args operands) { m.weigh(args[0]); m.weigh(args[1]) },
}

// chargeSearch charges a search that compares the text with the part at each place.
func chargeSearch(m meter, args operands) {
	m.spend(1 + textSize(args[0])*max(textSize(args[1]), 1)/searchPerUnit)
}
