package screen

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// A spelling is how the letters of a pattern are read: as the text is that it is looked for in.
type spelling uint8

const (
	asWritten spelling = iota // by whoever wrote the pattern
	asFolded                  // for folded text: capitals are lower case
	asMapped                  // for mapped text: literals mapped like the text
)

// literal returns a literal in this spelling.
func (as spelling) literal(runes []rune) string {
	text := string(runes)
	if as == asWritten {
		return text
	}
	if text = strings.ToLower(text); as == asMapped {
		text = mapLetters(text)
	}
	return text
}

// class returns the ranges of a class in this spelling. Mapped text cannot tell "i" from "l": a class that lists "l"
// gets "i", one that excludes "l" excludes "i".
func (as spelling) class(ranges []rune) []rune {
	if as == asWritten {
		return ranges
	}
	negated := len(ranges) > 0 && ranges[len(ranges)-1] == unicode.MaxRune
	if negated {
		if as == asMapped && !inClass(ranges, 'l') {
			return without(ranges, 'i')
		}
		return slices.Clone(ranges)
	}
	c := slices.Clone(ranges)
	for r := 'A'; r <= 'Z'; r++ {
		if inClass(ranges, r) {
			c = append(c, unicode.ToLower(r), unicode.ToLower(r))
		}
	}
	if as == asMapped && inClass(c, 'l') {
		c = append(c, 'i', 'i')
	}
	return c
}

// rewrite returns re in this spelling.
func (as spelling) rewrite(re *syntax.Regexp) *syntax.Regexp {
	c := *re
	c.Sub, c.Rune = nil, nil
	for _, sub := range re.Sub {
		c.Sub = append(c.Sub, as.rewrite(sub))
	}
	switch re.Op {
	case syntax.OpLiteral:
		c.Flags &^= syntax.FoldCase
		c.Rune = []rune(as.literal(re.Rune))
	case syntax.OpCharClass:
		c.Rune = as.class(re.Rune)
	}
	return &c
}

// without returns ranges without r.
func without(ranges []rune, r rune) []rune {
	var c []rune
	for i := 0; i < len(ranges); i += 2 {
		low, high := ranges[i], ranges[i+1]
		if r < low || high < r {
			c = append(c, low, high)
			continue
		}
		if low < r {
			c = append(c, low, r-1)
		}
		if r < high {
			c = append(c, r+1, high)
		}
	}
	return c
}

func inClass(ranges []rune, r rune) bool {
	for i := 0; i < len(ranges); i += 2 {
		if ranges[i] <= r && r <= ranges[i+1] {
			return true
		}
	}
	return false
}
