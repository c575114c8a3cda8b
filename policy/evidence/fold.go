package evidence

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// ignorable reports whether r is invisible (UAX #44, Default_Ignorable_Code_Point, and
// all of Cf): format characters, fillers, joiners and variation selectors.
func ignorable(r rune) bool {
	return r >= utf8.RuneSelf && (unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r))
}

func hasIgnorable(s string) bool { return strings.ContainsFunc(s, ignorable) }

// withoutIgnorable returns s without invisible characters.
func withoutIgnorable(s string) string {
	return strings.Map(func(r rune) rune {
		if ignorable(r) {
			return -1
		}
		return r
	}, s)
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// fold returns s as it looks to a reader: compatibility characters are decomposed (UAX #15, NFKD), accents and
// invisible characters are dropped.
func fold(s string) string {
	if isASCII(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if ignorable(r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(s))
}

// alphabets are those with letters that look like letters of another of them.
var alphabets = []*unicode.RangeTable{
	unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Armenian, unicode.Canadian_Aboriginal, unicode.Cherokee,
	unicode.Coptic, unicode.Deseret, unicode.Georgian, unicode.Glagolitic, unicode.Gothic, unicode.Lisu,
	unicode.Old_Italic, unicode.Osage, unicode.Tifinagh,
}

// mixesAlphabets reports whether s has letters of two alphabets.
func mixesAlphabets(s string) bool {
	if isASCII(s) {
		return false
	}
	var used *unicode.RangeTable
	for _, r := range s {
		for _, alphabet := range alphabets {
			if !unicode.Is(alphabet, r) {
				continue
			}
			if used != nil && used != alphabet {
				return true
			}
			used = alphabet
			break
		}
	}
	return false
}
