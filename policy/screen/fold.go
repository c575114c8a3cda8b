package screen

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// maxFoldings bounds how often non-ASCII text is folded until nothing changes. Two suffice, except
// for contrived sequences of marks.
const maxFoldings = 8

// Fold returns s in the form that patterns are written for: NFKC, without default-ignorable, format
// and control characters, case-folded (full folding, Unicode chapter 3.13), and with runs of white
// space made one space and none at the ends. Bytes that are not UTF-8 become U+FFFD.
func Fold(s string) string {
	if isASCII(s) {
		return strings.ToLower(dropInvisible(s))
	}
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	for range maxFoldings {
		next := norm.NFKC.String(cases.Fold().String(norm.NFKC.String(dropInvisible(s))))
		if next == s {
			break
		}
		s = next
	}
	return s
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// dropInvisible drops invisible characters and makes each run of white space one space.
func dropInvisible(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for _, r := range s {
		switch {
		case isSpace(r):
			space = true
			continue
		case isIgnorable(r):
			continue
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		b.WriteRune(r)
	}
	return b.String()
}

// isSpace counts the blank Braille pattern (U+2800) as white space, because it looks like it.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r == '\u2800' }

// isIgnorable reports whether r is invisible: Default_Ignorable_Code_Point (as
// DerivedCoreProperties derives it, but with all of Cf) and control characters.
func isIgnorable(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return unicode.In(r, unicode.Cf, unicode.Cc, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
