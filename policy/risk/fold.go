package risk

import (
	"strings"
	"unicode"
)

// fold returns s with each character replaced by the least of those that are the same but for case, by Unicode's simple
// folding: two texts fold to the same if [strings.EqualFold] says that they are equal.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 'A' {
			return r
		}
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, s)
}
