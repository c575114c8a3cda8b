package risk

import "strings"

// What a predicate is charged, in the units of [condition.MaxCost]. Measured, and rounded up.
const (
	perAsked  = 10  // to ask at all
	perStep   = 30  // for a step of its path: an object without an index has up to 31 names
	perScalar = 1   // to compare two scalars of other types, or texts
	perPlain  = 50  // to compare a number that is a short integer
	perDear   = 250 // to compare any other, and one for each byte of it
	perFolded = 2   // to look at a byte of text whatever its case
	perItems  = 1   // to look at a byte of a list
	dearItems = 40  // if there is a number in it that is no short integer
	perSame   = 64  // so many bytes of equal texts are compared for one unit
	perInst   = 0.5 // for an instruction of a pattern at a byte of text, as in package condition
)

// plainBytes is how long an integer may be to be compared as one.
const plainBytes = 18

// dearNumber reports whether a number has to be compared as a fraction.
func dearNumber(literal string) bool {
	return len(literal) > plainBytes || strings.ContainsAny(literal, ".eE")
}

// lookup is the price of finding the place that p asks about.
func (p *predicate) lookup() int64 { return perAsked + perStep*int64(len(p.steps)) }

// price is that of asking about a value that was found. It depends on nothing but the value's type and size.
func (p *predicate) price(n *node) int64 {
	switch {
	case p.op == OpMatches:
		return int64(perInst * float64(p.weight) * float64(n.size))
	case p.op == OpContains && n.kind == '[' && n.dear:
		return dearItems * n.size
	case p.op == OpContains && n.kind == '[':
		return perItems * n.size
	case p.op == OpContains:
		return perFolded * n.size
	case n.kind == '0' && n.dear:
		return p.weight * (perDear + min(n.size, MaxNumberBytes))
	case n.kind == '0':
		return p.weight * perPlain
	}
	return p.weight*perScalar + n.size/perSame
}
