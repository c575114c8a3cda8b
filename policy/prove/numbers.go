package prove

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"

	"pgfsm/policy/condition"
)

// exactInt is the largest integer up to which a double holds every integer.
const exactInt = 1 << 53

// shortInt is an integer below which every integer is what a double means: it has 15 digits.
const shortInt = 1_000_000_000_000_000

// divideNumbers returns JSON numbers for every way in which a number can compare with the given
// ones. Comparisons see a number's place among them, and which of four forms it has: an integer to
// 2^53, one beyond, a double, or a number that neither int64 nor a double holds, whose use fails.
func divideNumbers(among []*big.Rat, s *shape) (values []value) {
	seen := map[string]bool{}
	integersOnly := s.integersOnly()
	add := func(literal string) {
		x, ok := new(big.Rat).SetString(literal)
		if !ok || seen[literal] || integersOnly && !x.IsInt() || !s.inBounds(x) {
			return
		}
		seen[literal] = true
		values = append(values, value{number, literal})
	}

	for _, n := range integersNear(slices.Concat(among, s.bounds())) {
		if n.IsInt64() {
			add(n.String())
		}
		if d, _ := new(big.Float).SetInt(n).Float64(); !math.IsInf(d, 0) {
			add(doubleLiteral(d))
		}
	}
	for _, x := range slices.Concat(among, s.bounds()) {
		d, _ := x.Float64()
		for _, near := range []float64{d, math.Nextafter(d, math.Inf(-1)), math.Nextafter(d, math.Inf(1))} {
			if !math.IsInf(near, 0) {
				add(doubleLiteral(near))
			}
		}
	}
	for _, d := range []float64{0.5, -0.5, math.MaxFloat64, -math.MaxFloat64} {
		add(doubleLiteral(d))
	}

	return append(values, unheldNumbers(s)...)
}

// integersNear returns the integers at, below and above each number, those at the ends of what a
// double and an int64 hold exactly, and zero.
func integersNear(numbers []*big.Rat) (near []*big.Int) {
	one := big.NewInt(1)
	around := func(n *big.Int) {
		near = append(near, new(big.Int).Sub(n, one), n, new(big.Int).Add(n, one))
	}
	near = append(near, big.NewInt(1), big.NewInt(0))
	for _, x := range numbers {
		floor := new(big.Int).Div(x.Num(), x.Denom()) // Euclidean, and the denominator is positive
		around(floor)
		near = append(near, new(big.Int).Add(floor, big.NewInt(2)))
	}
	for _, end := range []int64{exactInt, -exactInt, math.MaxInt64, math.MinInt64} {
		around(big.NewInt(end))
	}
	return near
}

// doubleLiteral writes a double as a JSON number that is not an integer literal.
func doubleLiteral(d float64) string {
	literal := strconv.FormatFloat(d, 'g', -1, 64)
	if strings.Contains(literal, "e") {
		return strings.Replace(literal, "e+", "e", 1)
	}
	if !strings.Contains(literal, ".") {
		literal += ".0"
	}
	return literal
}

// unheldNumbers returns numbers that no condition can use. All fail alike, so the schema excludes
// them only if it has none.
func unheldNumbers(s *shape) (values []value) {
	least, greatest := s.range15()
	if s.integersOnly() && least && greatest {
		return nil
	}

	tiny := new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil))
	for _, bound := range s.bounds() {
		above, below := new(big.Rat).Add(bound, tiny), new(big.Rat).Sub(bound, tiny)
		values = append(values, value{number, above.FloatString(31)}, value{number, below.FloatString(31)})
	}
	for _, literal := range []string{
		"99999999999999999999", "-99999999999999999999", "0.10000000000000000000001", "9007199254740993.0",
	} {
		values = append(values, value{number, literal})
	}

	return values
}

// range15 reports whether the schemas bound numbers from below and from above to 15 digits.
func (s *shape) range15() (least, greatest bool) {
	short := func(x *big.Rat) bool {
		return x != nil && x.Cmp(big.NewRat(shortInt, 1)) <= 0 && x.Cmp(big.NewRat(-shortInt, 1)) >= 0
	}
	for _, n := range s.all {
		least = least || short(n.Minimum) || short(n.ExclusiveMinimum)
		greatest = greatest || short(n.Maximum) || short(n.ExclusiveMaximum)
	}
	return least, greatest
}

// formsOf returns the forms of a number in which conditions may judge it differently: as an integer
// literal and as one with a point.
func formsOf(literal string) []value {
	forms := []value{value{number, literal}}
	x, ok := new(big.Rat).SetString(literal)
	if !ok {
		return forms
	}
	if x.IsInt() {
		digits := x.Num().String()
		return append(forms, value{number, digits}, value{number, digits + ".0"})
	}
	return forms
}

// ratOf returns the number that a literal of an expression, or a JSON literal, means.
func ratOf(v any) *big.Rat {
	switch v := v.(type) {
	case types.Int:
		return new(big.Rat).SetInt64(int64(v))
	case types.Uint:
		return new(big.Rat).SetInt(new(big.Int).SetUint64(uint64(v)))
	case types.Double:
		return new(big.Rat).SetFloat64(float64(v)) // nil if it is not finite
	case string:
		return ratOf(condition.Number(v))
	}
	return nil
}
