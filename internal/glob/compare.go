package glob

// Overlaps reports whether some text is matched by both a and b.
func Overlaps(a, b *Glob) bool {
	if a == nil || b == nil || a.pattern == "" || b.pattern == "" {
		return false
	}
	if text, ok := a.Literal(); ok {
		return b.Match(text)
	}
	if text, ok := b.Literal(); ok {
		return a.Match(text)
	}

	return comparePatterns(a.tokens, b.tokens, func(a, b []rune, holdsAfter func(i, j int) bool) bool {
		switch {
		case len(a) == 0 && len(b) == 0:
			return true
		case len(a) > 0 && a[0] == star:
			// The star matches nothing, or what b's next token matches.
			return holdsAfter(1, 0) || len(b) > 0 && holdsAfter(0, 1)
		case len(b) > 0 && b[0] == star:
			return holdsAfter(0, 1) || len(a) > 0 && holdsAfter(1, 0)
		case len(a) == 0 || len(b) == 0:
			return false
		}
		return (a[0] == b[0] || a[0] == question || b[0] == question) && holdsAfter(1, 1)
	})
}

// Includes reports whether a matches every text that b matches. It is right if it says so; it
// compares the patterns token by token, and says no of `?*` and `*a`, because `?` is no part of
// `*`.
func Includes(a, b *Glob) bool {
	if b == nil || b.pattern == "" {
		return true
	}
	if a == nil || a.pattern == "" {
		return false
	}
	if text, ok := b.Literal(); ok {
		return a.Match(text)
	}
	return comparePatterns(a.tokens, b.tokens, func(a, b []rune, holdsAfter func(i, j int) bool) bool {
		switch {
		case len(a) == 0:
			return len(b) == 0
		case a[0] == star:
			return holdsAfter(1, 0) || len(b) > 0 && holdsAfter(0, 1)
		}
		return len(b) > 0 && (a[0] == b[0] || a[0] == question && b[0] != star) && holdsAfter(1, 1)
	})
}

// comparePatterns decides whether two patterns are in a relation, from their ends to their
// beginnings. holds decides it for one pair of rests; holdsAfter is the relation of what is left
// without the next i tokens of a and j tokens of b.
func comparePatterns(a, b []rune, holds func(a, b []rune, holdsAfter func(i, j int) bool) bool) bool {
	compared := make([][]bool, len(a)+1)
	for i := len(a); i >= 0; i-- {
		compared[i] = make([]bool, len(b)+1)
		for j := len(b); j >= 0; j-- {
			compared[i][j] = holds(a[i:], b[j:], func(di, dj int) bool { return compared[i+di][j+dj] })
		}
	}
	return compared[0][0]
}
