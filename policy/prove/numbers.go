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
const exactInt, exactBits = 1 << 53, 53

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

	bounds := s.bounds()
	for _, n := range integersNear(slices.Concat(among, bounds)) {
		add(n.String())
		if d, _ := new(big.Float).SetInt(n).Float64(); !math.IsInf(d, 0) {
			add(doubleLiteral(d))
		}
		if n.BitLen() > exactBits {
			add(n.String() + ".0") // which most doubles do not hold
		}
	}
	for _, x := range slices.Concat(among, bounds) {
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

	// Between any two numbers there are some with too many digits, so bounds do not exclude them.
	if !integersOnly {
		values = append(values, value{number, "0.10000000000000000000001"})
		tiny := new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil))
		for _, bound := range bounds {
			values = append(values, value{number, new(big.Rat).Add(bound, tiny).FloatString(31)},
				value{number, new(big.Rat).Sub(bound, tiny).FloatString(31)})
		}
	}
	return values
}

// integersNear returns the integers near each number, near the ends of what a double and an int64
// hold exactly, and near zero.
func integersNear(numbers []*big.Rat) (near []*big.Int) {
	centers := []*big.Int{new(big.Int)}
	for _, x := range numbers {
		centers = append(centers, new(big.Int).Div(x.Num(), x.Denom())) // Euclidean, and the denominator is positive
	}
	for _, end := range []int64{exactInt, -exactInt, math.MaxInt64, math.MinInt64} {
		centers = append(centers, big.NewInt(end))
	}
	for _, center := range centers {
		for _, offset := range []int64{1, 0, -1, 2, -2} {
			near = append(near, new(big.Int).Add(center, big.NewInt(offset)))
		}
	}
	return near
}

// doubleLiteral writes a double as a JSON number that is not an integer literal.
func doubleLiteral(d float64) string {
	literal := strconv.FormatFloat(d, 'g', -1, 64)
	if !strings.ContainsAny(literal, ".e") {
		literal += ".0"
	}
	return strings.Replace(literal, "e+", "e", 1)
}

// formsOf returns the forms of a number in which conditions may judge it differently: as an integer
// literal and as one with a point.
func formsOf(literal string) []value {
	forms := []value{{number, literal}}
	if x, ok := new(big.Rat).SetString(literal); ok && x.IsInt() {
		digits := x.Num().String()
		forms = append(forms, value{number, digits}, value{number, digits + ".0"})
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
