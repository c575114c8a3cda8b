package evidence

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// forbidden names what in s may not reach a reader, or returns "". hidden reports forbidden characters.
func forbidden(s string, hidden func(rune) bool) string {
	if !utf8.ValidString(s) {
		return "bytes that are not UTF-8"
	}
	if strings.Contains(s, "](") {
		return "a Markdown link"
	}
	before := rune(0)
	for _, r := range s {
		switch {
		case before == '<' && (unicode.IsLetter(r) || strings.ContainsRune("/!?", r)):
			return "markup"
		case hidden(r):
			return fmt.Sprintf("the character %U", r)
		}
		before = r
	}
	return ""
}

// hiddenInClaim reports characters that may be invisible or ambiguous in a claim.
func hiddenInClaim(r rune) bool { return !unicode.IsGraphic(r) || ignorable(r) }

// hiddenInEvidence reports fewer: payloads have line breaks, and emoji and some languages need invisible characters.
func hiddenInEvidence(r rune) bool {
	switch r {
	case '\t', '\n', '\r', '\u200c', '\u200d':
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' ||
		0xE0100 <= r && r <= 0xE01EF
}

// invisible returns the first token of s with an invisible character.
func invisible(s string) (Token, bool) {
	for _, t := range Tokens(s) {
		if hasIgnorable(t.Text) {
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
