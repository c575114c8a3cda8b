package evidence

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// isIgnorable reports whether r is invisible (UAX #44, Default_Ignorable_Code_Point, and
// all of Cf): format characters, fillers, joiners and variation selectors.
func isIgnorable(r rune) bool {
	return r >= utf8.RuneSelf && unicode.In(r, unicode.Cf, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point)
}

// withoutIgnorable returns s without invisible characters.
func withoutIgnorable(s string) string { return dropRunes(s, isIgnorable) }

func dropRunes(s string, drop func(rune) bool) string {
	return strings.Map(func(r rune) rune {
		if drop(r) {
			return -1
		}
		return r
	}, s)
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// fold returns s as it looks to a reader: compatibility characters are decomposed (UAX #15, NFKD),
// accents and invisible characters are dropped.
func fold(s string) string {
	if isASCII(s) {
		return s
	}
	return dropRunes(norm.NFKD.String(s),
		func(r rune) bool { return isIgnorable(r) || unicode.In(r, unicode.Mn, unicode.Me) })
}

// mixesAlphabets reports whether s has letters of two of the alphabets that look most alike.
func mixesAlphabets(s string) bool {
	used := 0
	for _, alphabet := range []*unicode.RangeTable{unicode.Latin, unicode.Greek, unicode.Cyrillic} {
		if strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(alphabet, r) }) {
			used++
		}
	}
	return used > 1
}

// forbiddenContent names what in s may not reach a reader, or returns "". hidden reports forbidden
// characters.
func forbiddenContent(s string, hidden func(rune) bool) string {
	if !utf8.ValidString(s) {
		return "bytes that are not UTF-8"
	}
	if strings.Contains(s, "](") {
		return "a Markdown link"
	}
	previous := rune(0)
	for _, r := range s {
		switch {
		case previous == '<' && (unicode.IsLetter(r) || strings.ContainsRune("/!?", r)):
			return "markup"
		case hidden(r):
			return fmt.Sprintf("the character %U", r)
		}
		previous = r
	}
	return ""
}

// hiddenInClaim reports characters that may be invisible or ambiguous in a claim.
func hiddenInClaim(r rune) bool { return !unicode.IsGraphic(r) || isIgnorable(r) }

// hiddenInEvidence reports fewer: payloads have line breaks, and emoji and some languages need
// invisible characters.
func hiddenInEvidence(r rune) bool {
	switch r {
	case '\t', '\n', '\r', '\u200c', '\u200d':
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' ||
		0xE0100 <= r && r <= 0xE01EF
}

// invisibleToken returns the first token of s with an invisible character.
func invisibleToken(s string) (Token, bool) {
	for _, t := range Tokens(s) {
		if strings.ContainsFunc(t.Text, isIgnorable) {
			return t, true
		}
	}
	return Token{}, false
}

// wordCount counts words as the package comment defines them.
func wordCount(s string) int {
	n, counted := 0, false
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			counted = false
		case unicode.Is(unicode.Han, r), unicode.Is(unicode.Hiragana, r):
			n++
			counted = true
		case !counted && (unicode.IsLetter(r) || isNumber(r)):
			n++
			counted = true
		}
	}
	return n
}

func hasWord(s string) bool { return wordCount(s) > 0 }
