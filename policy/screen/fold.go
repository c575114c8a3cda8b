package screen

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// maxFoldings bounds how often non-ASCII text is folded until nothing changes; two suffice for all but artful
// sequences of marks.
const maxFoldings = 8

// Fold returns s in the form that patterns are written for: NFKC, without default-ignorable, format and control
// characters, case-folded (full folding, Unicode chapter 3.13), and with runs of white space made one space and
// none at the ends. Bytes that are not UTF-8 become U+FFFD.
func Fold(s string) string {
	if isFolded(s) {
		return s
	}
	if isASCII(s) {
		return foldASCII(s)
	}
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	for range maxFoldings {
		next := norm.NFKC.String(cases.Fold().String(norm.NFKC.String(visible(s))))
		if next == s {
			break
		}
		s = next
	}
	return s
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// isFolded reports whether s is ASCII that folding leaves as it is, as most texts are.
func isFolded(s string) bool {
	for i := 0; i < len(s); i++ {
		if !stays[s[i]] && (s[i] != ' ' || i == 0 || i == len(s)-1 || s[i-1] == ' ') {
			return false
		}
	}
	return true
}

// stays are the bytes of ASCII that folding never changes: no capitals, spaces and control characters.
var stays = func() (table [256]bool) {
	for i := range 256 {
		c := byte(i)
		table[i] = ' ' < c && c < 0x7f && (c < 'A' || 'Z' < c)
	}
	return table
}()

// foldASCII is Fold for ASCII.
func foldASCII(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == ' ', '\t' <= c && c <= '\r':
			if len(b) > 0 && b[len(b)-1] != ' ' {
				b = append(b, ' ')
			}
		case c < ' ', c == 0x7f:
		case 'A' <= c && c <= 'Z':
			b = append(b, c|0x20)
		default:
			b = append(b, c)
		}
	}
	if len(b) > 0 && b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	return string(b)
}

// visible drops what has no shape and makes white space single spaces.
func visible(s string) string {
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

// isSpace counts the blank Braille pattern as white space: it looks like it.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r == '\u2800' }

// isIgnorable reports what leaves no mark on the page: Default_Ignorable_Code_Point (as DerivedCoreProperties derives
// it, but with all of Cf) and control characters.
func isIgnorable(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Cc, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// hidden returns the ASCII that is spelled in tag characters (U+E0020 to U+E007E) and in variation selectors taken as
// bytes (U+FE00 to U+FE0F are 0 to 15, U+E0100 to U+E01EF 16 to 255): text that a model reads and a person does not
// see.
func hidden(s string) string {
	var b []byte
	for _, r := range s {
		switch {
		case 0xE0020 <= r && r <= 0xE007E:
			b = append(b, byte(r-0xE0000))
		case 0xE0110 <= r && r <= 0xE016E: // the printable ones of the second kind
			b = append(b, byte(r-0xE0100+16))
		}
	}
	return string(b)
}
