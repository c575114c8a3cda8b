package risk

import (
	"math/big"
	"strconv"
	"strings"
)

// A number is what a JSON literal says, exactly.
type number struct {
	small int64
	large *big.Rat // nil: small says it
}

// readNumber reads a JSON number. It refuses literals that would be dear to compare.
func readNumber(literal string) (number, bool) {
	if n, err := strconv.ParseInt(literal, 10, 64); err == nil {
		return number{small: n}, true
	}
	if len(literal) > MaxNumberBytes {
		return number{}, false
	}
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		exponent, err := strconv.Atoi(literal[i+1:])
		if err != nil || exponent < -MaxExponent || exponent > MaxExponent {
			return number{}, false
		}
	}
	r, ok := new(big.Rat).SetString(literal)
	return number{large: r}, ok
}

// compare returns -1, 0 or 1 for a < b, a = b, a > b.
func (a number) compare(b number) int {
	if a.large == nil && b.large == nil {
		switch {
		case a.small < b.small:
			return -1
		case a.small > b.small:
			return 1
		}
		return 0
	}
	return a.rat().Cmp(b.rat())
}

func (a number) rat() *big.Rat {
	if a.large != nil {
		return a.large
	}
	return new(big.Rat).SetInt64(a.small)
}
