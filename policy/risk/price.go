package risk

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// What a predicate is charged, in the units of [condition.MaxDecision].
const (
	perStep       = 2  // to ask, and for each step of the path
	bytesEqual    = 64 // bytes of text that are compared for one unit
	bytesFolded   = 2  // the same, whatever their case
	bytesMatching = 8  // instructions of a pattern times bytes of text for one unit
)

// lookup is the price of finding the place that p asks about.
func (p *predicate) lookup() int64 { return perStep * int64(1+len(p.steps)) }

// price is that of asking about a value that was found. It depends on nothing but the value's type and size.
func (p *predicate) price(v ref.Val) int64 {
	text, _ := v.(types.String)
	switch l, isList := v.(traits.Lister); {
	case p.op == OpMatches:
		return p.weight * int64(len(text)) / bytesMatching
	case p.op == OpContains && isList:
		return listPrice(l)
	case p.op == OpContains:
		return int64(len(text)) / bytesFolded
	}
	return p.weight * int64(1+len(text)/bytesEqual)
}

// listPrice is the price of looking for a text or another scalar in a list.
func listPrice(l traits.Lister) int64 {
	units := int64(l.Size().(types.Int))
	for i := range l.Size().(types.Int) {
		if text, ok := l.Get(i).(types.String); ok {
			units += int64(len(text)) / bytesFolded
		}
	}
	return units
}
