package screen

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// A form is how the letters of a pattern are read: like those of the text in which it is searched.
type form uint8

const (
	formWritten form = iota // as the author of the pattern wrote them
	formFolded              // for folded text: capitals are lower case
	formMapped              // for mapped text: literals are mapped like the text
)

// literal returns a literal in this form.
func (f form) literal(runes []rune) string {
	text := string(runes)
	if f == formWritten {
		return text
	}
	if text = strings.ToLower(text); f == formMapped {
		text = mapLetters(text)
	}
	return text
}

// class returns the ranges of a class in this form. Mapped text has "i" for both "i" and "l": a class that lists "l"
// also lists "i", and one that excludes "l" excludes "i".
func (f form) class(ranges []rune) []rune {
	if f == formWritten {
		return ranges
	}
	negated := len(ranges) > 0 && ranges[len(ranges)-1] == unicode.MaxRune
	if negated {
		if f == formMapped && !inClass(ranges, 'l') {
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
	if f == formMapped && inClass(c, 'l') {
		c = append(c, 'i', 'i')
	}
	return c
}

// rewrite returns re in this form.
func (f form) rewrite(re *syntax.Regexp) *syntax.Regexp {
	c := *re
	c.Sub, c.Rune = nil, nil
	for _, sub := range re.Sub {
		c.Sub = append(c.Sub, f.rewrite(sub))
	}
	switch re.Op {
	case syntax.OpLiteral:
		c.Flags &^= syntax.FoldCase
		c.Rune = []rune(f.literal(re.Rune))
	case syntax.OpCharClass:
		c.Rune = f.class(re.Rune)
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
