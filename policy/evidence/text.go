package evidence

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// unshowable says what in s may not reach a reader, or "" if there is nothing. Control characters in allowed are let
// through.
func unshowable(s, allowed string) string {
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
		case unicode.IsControl(r) && !strings.ContainsRune(allowed, r),
			unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d',
			r == '\u2028', r == '\u2029', 0xE0100 <= r && r <= 0xE01EF:
			return fmt.Sprintf("the character %U", r)
		}
		before = r
	}
	return ""
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
		case !counted && (unicode.IsLetter(r) || unicode.IsNumber(r)):
			n++
			counted = true
		}
	}
	return n
}

func hasWord(s string) bool { return wordCount(s) > 0 }
